//! The wire format: keys, lengths and numbers, read from a slice that is never left.

/// The value of a field, as it is encoded in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    /// A number.
    Number(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// Of a fixed width: no field of ours.
    Fixed,
}

/// The fields of a message, in order.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field's number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u64, WireValue<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.number()?;
        let found = match key & 7 {
            0 => WireValue::Number(self.number()?),
            1 => self.take(8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = self.number()?;
                let length = usize::try_from(length).map_err(|_| too_short())?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| WireValue::Fixed)?,
            other => return Err(format!("a field has the unknown wire type {other}")),
        };
        match key >> 3 {
            0 => Err("a field has the number 0".to_owned()),
            number => Ok(Some((number, found))),
        }
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.first().copied().unwrap_or_default();
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number has more than 64 bits".to_owned())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn too_short() -> String {
    "it ends inside a field".to_owned()
}

/// As UTF-8.
pub(super) fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".to_owned())
}

/// What the envelope has.
#[derive(Debug, Default)]
pub(super) struct Unknown<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) raw: &'a [u8],
    pub(super) content_type: &'a str,
}

impl<'a> Unknown<'a> {
    pub(super) fn read(message: &'a [u8]) -> Result<Self, String> {
        let mut unknown = Self::default();
        let mut fields = Fields::of(message);
        while let Some((number, found)) = fields.next()? {
            match (number, found) {
                (1, WireValue::Bytes(meta)) => unknown.type_meta(meta)?,
                (2, WireValue::Bytes(raw)) => unknown.raw = raw,
                (3, WireValue::Bytes(encoding)) if !encoding.is_empty() => {
                    return Err("its content is encoded".to_owned());
                }
                (4, WireValue::Bytes(content_type)) => unknown.content_type = text(content_type)?,
                _ => {}
            }
        }
        Ok(unknown)
    }

    fn type_meta(&mut self, meta: &'a [u8]) -> Result<(), String> {
        let mut fields = Fields::of(meta);
        while let Some((number, found)) = fields.next()? {
            match (number, found) {
                (1, WireValue::Bytes(version)) => self.api_version = text(version)?,
                (2, WireValue::Bytes(kind)) => self.kind = text(kind)?,
                _ => {}
            }
        }
        Ok(())
    }
}
