//! One call, repeated while the agent restarts. Every verb may be repeated: ADD is idempotent per
//! container id and interface name, the others by their nature.

use super::http::{self, RequestError, Response};
use super::input;
use super::{Failure, Surroundings};
use crate::queue;
use plexus_api::cni::{Code, Command, Error, Request};
use plexus_types::chain;
use serde::de::IgnoredAny;
use std::path::Path;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A request on its way.
pub(super) struct Call<'a> {
    pub(super) surroundings: &'a Surroundings<'a>,
    pub(super) command: Command,
    pub(super) socket: &'a Path,
    pub(super) request: &'a Request<'a>,
    pub(super) body: &'a str,
}

impl Call<'_> {
    /// The text to print, empty if there is none.
    ///
    /// The wait for an absent agent begins when it is first missed, so that an ADD which ran long
    /// before its agent died still gets its chance; it is bounded all the same.
    pub(super) fn run(&self) -> Result<String, Failure> {
        let patience = self.patience()?;
        let limit = answer_limit(self.command);
        let request = http::request(&format!("/cni/{}", self.command.path()), self.body);
        let mut pause = FIRST_PAUSE;
        let mut missed: Option<Instant> = None;
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = http::exchange(self.socket, &request, limit);
            let why = match answer.and_then(|response| self.judge(response)) {
                Ok(text) => return text.map_err(Failure::Told),
                Err(RequestError::Slow) => return Err(self.slow(limit).into()),
                Err(RequestError::Barred(why)) => return Err(self.barred(&why).into()),
                Err(RequestError::Away(why)) => why,
            };
            let waited = missed.get_or_insert_with(Instant::now).elapsed();
            if waited >= patience && tries >= self.least_tries() {
                return self.give_up(&why, tries, waited);
            }
            std::thread::sleep(pause.min(patience.saturating_sub(waited)));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The text to print, or the agent's error; trouble if it is neither.
    fn judge(&self, response: Response) -> Result<Result<String, String>, RequestError> {
        let Response { status, body } = response;
        if status == 200 {
            if self.command != Command::Add {
                return Ok(Ok(String::new()));
            }
            if body.starts_with('{') && serde_json::from_str::<IgnoredAny>(&body).is_ok() {
                return Ok(Ok(body));
            }
            return Err(RequestError::Away(
                "its answer is not a JSON object".to_owned(),
            ));
        }
        if Error::from_json(&body).is_some() {
            return Ok(Err(body));
        }
        Err(RequestError::Away(format!(
            "it answered HTTP status {status} without a CNI error"
        )))
    }

    fn patience(&self) -> Result<Duration, Error> {
        let usual = match self.command {
            Command::Add | Command::Check | Command::Gc => 10_000,
            Command::Del => 2_000,
            Command::Status => return Ok(Duration::ZERO),
        };
        let given = input::variable(self.surroundings, "PLEXUS_CNI_WAIT_MS")?;
        if given.is_empty() {
            return Ok(Duration::from_millis(usual));
        }
        match given.parse::<u32>() {
            Ok(ms) if ms <= 600_000 => Ok(Duration::from_millis(ms.into())),
            _ => {
                let shown: String = given.chars().take(64).collect();
                let msg = format!("PLEXUS_CNI_WAIT_MS {shown:?} is not a number from 0 to 600000");
                Err(Error::new(Code::InvalidEnvironment, msg, "unset it"))
            }
        }
    }

    fn least_tries(&self) -> u32 {
        if self.command == Command::Del { 2 } else { 1 }
    }

    fn give_up(&self, why: &str, tries: u32, waited: Duration) -> Result<String, Failure> {
        if self.command == Command::Del {
            let Request {
                container_id,
                ifname,
                ..
            } = self.request;
            return match queue::put(self.socket, container_id, ifname, self.body) {
                Ok(()) => Ok(String::new()),
                Err(error) => Err(self.not_queued(why, &error).into()),
            };
        }
        let socket = self.socket.display();
        let code = self.code(Code::TryAgainLater);
        let waited = waited.as_millis();
        let msg = format!(
            "the agent does not answer on {socket}: {why} (tried {} in {waited} ms)",
            times(tries)
        );
        Err(Error::new(code, msg, NEXT_STEP).into())
    }

    fn not_queued(&self, why: &str, error: &queue::Error) -> Error {
        let code = match error {
            queue::Error::Name(_) => Code::InvalidEnvironment,
            _ => Code::TryAgainLater,
        };
        let causes = chain(error);
        let socket = self.socket.display();
        let msg = format!(
            "the agent does not answer on {socket}: {why}; and the DEL could not be queued: {causes}"
        );
        Error::new(code, msg, NEXT_STEP)
    }

    fn slow(&self, limit: Duration) -> Error {
        let msg = format!(
            "the agent on {} took the request and has not answered within {} s",
            self.socket.display(),
            limit.as_secs()
        );
        let next = "see the log of `plexus agent` for what it waits for";
        Error::new(self.code(Code::TryAgainLater), msg, next)
    }

    fn barred(&self, why: &str) -> Error {
        let next = "the agent's socket is for root only: check the path and who calls";
        Error::new(self.code(Code::Io), why, next)
    }

    /// STATUS has a code of its own for an agent that cannot be asked.
    fn code(&self, of_others: Code) -> Code {
        match self.command {
            Command::Status => Code::NotAvailable,
            _ => of_others,
        }
    }
}

const NEXT_STEP: &str = "start the agent, or see why it stopped: `systemctl status plexus-agent`, \
                         the log of `plexus agent`; if it listens elsewhere, say where with agentSocket \
                         or PLEXUS_AGENT_SOCKET";

/// How long a living agent may take; delegates are slow, and a DEL waits for the kernel.
fn answer_limit(command: Command) -> Duration {
    Duration::from_secs(match command {
        Command::Add | Command::Gc => 120,
        Command::Del | Command::Check => 60,
        Command::Status => 5,
    })
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_is_once() {
        assert_eq!(
            [1, 2, 41].map(super::times),
            ["once", "2 times", "41 times"]
        );
    }
}
