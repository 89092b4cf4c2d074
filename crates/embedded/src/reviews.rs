//! Answers to a client that asks who it is and what it may do. Whoever got in may do everything:
//! the server has one user, and TLS or the socket's mode keeps the others out.

use crate::kinds::Kind;
use serde_json::{Map, Value, json};

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name in its certificate.
    pub name: String,
    /// The organisations in the certificate.
    pub groups: Vec<String>,
    /// Of a user that has one; certificates say none.
    pub uid: String,
}

/// A review with its answer in `status`.
#[must_use]
pub fn answer(kind: &Kind, review: Value, user: &User) -> Value {
    let mut review = match review {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let status = match kind.kind.as_str() {
        "SelfSubjectAccessReview" => json!({"allowed": true}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"userInfo": user_info(user)}),
    };
    review.insert("apiVersion".to_owned(), kind.api_version().into());
    review.insert("kind".to_owned(), kind.kind.clone().into());
    review.entry("metadata").or_insert_with(|| json!({}));
    review.insert("status".to_owned(), status);
    Value::Object(review)
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    info
}

#[cfg(test)]
mod tests {
    use super::{User, answer};
    use crate::kinds::Kinds;
    use serde_json::{Value, json};

    fn review_answer(group: &str, plural: &str, review: Value) -> Value {
        let kinds = Kinds::builtin().unwrap();
        let user = User {
            name: "admin".to_owned(),
            groups: vec!["system:masters".to_owned()],
            uid: String::new(),
        };
        let answer = answer(kinds.get(group, "v1", plural).unwrap(), review, &user);
        kinds
            .get(group, "v1", plural)
            .unwrap()
            .check_typed(&answer)
            .unwrap();
        answer
    }

    #[test]
    fn everything_is_allowed() {
        let spec = json!({"resourceAttributes": {"verb": "create", "resource": "pods"}});
        let answer = review_answer(
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            json!({"spec": spec}),
        );
        assert_eq!(answer["status"]["allowed"], true);
        assert_eq!(answer["spec"], spec);
        assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    }

    #[test]
    fn the_rules_are_one_star() {
        let spec = json!({"spec": {"namespace": "default"}});
        let answer = review_answer("authorization.k8s.io", "selfsubjectrulesreviews", spec);
        assert_eq!(answer["status"]["resourceRules"][0]["verbs"], json!(["*"]));
        assert_eq!(answer["status"]["incomplete"], false);
    }

    #[test]
    fn a_client_learns_its_name() {
        let answer = review_answer("authentication.k8s.io", "selfsubjectreviews", Value::Null);
        let info = &answer["status"]["userInfo"];
        assert_eq!(
            info,
            &json!({"username": "admin", "groups": ["system:masters"]})
        );
    }
}
