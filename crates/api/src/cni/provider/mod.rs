//! The registry of native providers: the only list of them. Owns [`Provider`], which carries the
//! options of one of them, and who is asked about what. Each provider has a file of its own here
//! and one of the same name in `core`; nobody else matches on providers, they ask [`ProviderKind`].

mod kind;

pub use kind::{ProviderKind, Routing, Segment};

use super::{Chain, Dns, Ipam, ObjectFacts};
use crate::Fields;
use crate::cni::parse::request::RuntimeRequest;
use crate::objects::NetworkSpec;
use kind::Options;
use plexus_types::Mac;
use std::net::IpAddr;

/// The registry: calls a macro with every provider, as its module and the type of its options.
///
/// The module is a file here and in `core/src/plan/provider/`; a new provider is those files and
/// one line. Messages list providers in this order, those about `Network` objects in reverse.
#[macro_export]
macro_rules! with_providers {
    ($callback:ident) => {
        $callback! {
            macvlan Macvlan,
            ipvlan Ipvlan,
            vlan Vlan,
            bridge Bridge,
            routed Routed,
            overlay Overlay,
            host_device HostDevice,
            #[cfg(feature = "stand-in")]
            stand_in StandIn,
        }
    };
}

macro_rules! registry {
    ($($(#[$when:meta])* $module:ident $Options:ident,)*) => {
        $($(#[$when])* mod $module;)*
        $($(#[$when])* pub use $module::*;)*

        /// The options of a native provider.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Provider {
            $(
                #[doc = concat!("Those of `", stringify!($module), "`.")]
                $(#[$when])* $Options($Options),
            )*
        }

        $($(#[$when])* impl From<$Options> for Provider {
            fn from(options: $Options) -> Self {
                Provider::$Options(options)
            }
        })*

        impl Provider {
            /// All providers.
            pub const KINDS: &[&ProviderKind] = &[$($(#[$when])* &$Options::KIND),*];

            /// What holds of all networks of this provider.
            pub fn kind(&self) -> &'static ProviderKind {
                match self {
                    $($(#[$when])* Provider::$Options(_) => &$Options::KIND,)*
                }
            }

            /// Reads the options of a provider, but those that all have.
            pub(super) fn read(
                kind: &ProviderKind,
                fields: &mut Fields<'_>,
                request: &RuntimeRequest,
            ) -> Option<Self> {
                match kind.name {
                    $($(#[$when])* name if name == $Options::KIND.name => {
                        $Options::read(fields, request).map(Provider::$Options)
                    })*
                    _ => None,
                }
            }

            /// Gives it the plugin that it stands in for, if it may have to be executed.
            pub(super) fn keep_plugin(&mut self, plugin: impl FnOnce() -> Chain) {
                match self {
                    $($(#[$when])* Provider::$Options(options) => options.keep_plugin(plugin),)*
                }
            }

            /// The plugin that is executed where it cannot do without.
            pub fn plugin(&self) -> Option<&Chain> {
                match self {
                    $($(#[$when])* Provider::$Options(options) => options.plugin(),)*
                }
            }

            /// Adds what a `Network` object says, and what the cluster knows of it.
            pub(super) fn with_network(&mut self, spec: &NetworkSpec, facts: &ObjectFacts) {
                match self {
                    $($(#[$when])* Provider::$Options(options) => options.with_network(spec, facts),)*
                }
            }
        }
    };
}
with_providers!(registry);

impl Provider {
    /// The provider of a `Network` object that names none.
    pub const DEFAULT: &str = Overlay::KIND.name;

    /// As users write it.
    pub fn name(&self) -> &'static str {
        self.kind().name
    }

    /// Whether a pod has its addresses alone (/32, /128) and a link-local next hop.
    pub fn is_routed(&self) -> bool {
        self.kind().is_routed()
    }
}

/// A network that we make ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// What the interface is made of.
    pub provider: Provider,
    /// Where its addresses come from; none: a link without addresses.
    pub ipam: Option<Ipam>,
    /// The MAC asked for: runtimeConfig, else `args.cni`, else CNI_ARGS, else the configuration.
    pub mac: Option<Mac>,
    /// Addresses asked for: runtimeConfig, else `args.cni`, else CNI_ARGS; prefix if written.
    /// Empty for `static`, where they are among its addresses already, and where a plugin is executed, which gets them.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// MTU of the interface.
    pub mtu: Option<u32>,
    /// DNS of the configuration, passed on in the result.
    pub dns: Dns,
}
