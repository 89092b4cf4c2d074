//! One object.

use super::{Api, Subject, list};
use crate::http::{Answer, Request};
use crate::status::Refused;
use crate::table::Form;

pub(super) async fn get(
    api: &Api,
    subject: &Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    if let Some(version) = list::version(request)? {
        list::not_older_than(api, version).await?;
    }
    let object = api.store.get(subject.table, &subject.key());
    let object = object.ok_or_else(|| subject.not_found())?;
    subject.answer(200, &object, form)
}
