//! The form in which methods are declared, once: jsonrpsee's traits for both sides are made from it, and the document of the
//! wire. Must never know a method.

/// A trait of methods in jsonrpsee's words, as it stands, and the same methods for the document. With a namespace its methods are
/// named `namespace/method` on the wire.
macro_rules! resource {
    ($($item:tt)*) => {
        $($item)*
        describe! { $($item)* }
    };
}

/// The methods for the document.
#[cfg(feature = "schema")]
macro_rules! describe {
    (
        $(#[doc = $doc:literal])*
        #[cfg($($when:tt)*)]
        #[cfg_attr($both:meta, rpc(server, client, namespace = $namespace:literal, $($how:tt)*))]
        $(#[cfg_attr($($side:tt)*)])*
        pub trait $name:ident { $($methods:tt)* }
    ) => {
        describe! { @ [$($doc)*] [concat!($namespace, "/")] $name { $($methods)* } }
    };
    (
        $(#[doc = $doc:literal])*
        #[cfg($($when:tt)*)]
        #[rpc($($how:tt)*)]
        pub trait $name:ident { $($methods:tt)* }
    ) => {
        describe! { @ [$($doc)*] [""] $name { $($methods)* } }
    };
    (@ [$($doc:literal)*] [$prefix:expr] $name:ident { $($methods:tt)* }) => {
        /// The methods as the document describes them.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl crate::schema::Resource for $name {
            const DOC: &'static [&'static str] = &[$($doc),*];

            fn describe(to: &mut crate::schema::Builder) {
                describe! { @ to [$prefix] $($methods)* }
            }
        }
    };
    (@ $to:ident [$prefix:expr]) => {};
    (@ $to:ident [$prefix:expr]
        $(#[doc = $doc:literal])*
        #[method(name = $method:literal $($how:tt)*)]
        $(#[allow($($lint:tt)*)])?
        async fn $function:ident(&self $(, $param:ident: $type:ty)* $(,)?) -> Result<$result:ty, $error:ty>;
        $($rest:tt)*
    ) => {
        let params = vec![$($to.param::<$type>(stringify!($param), stringify!($type))),*];
        let result = $to.result::<$result>();
        $to.method(concat!($prefix, $method), &[$($doc),*], params, result);
        describe! { @ $to [$prefix] $($rest)* }
    };
    (@ $to:ident [$prefix:expr]
        $(#[doc = $doc:literal])*
        #[subscription(name = $method:literal => $event:literal, unsubscribe = $end:literal, item = $item:ty $(, $($how:tt)*)?)]
        async fn $function:ident(&self $(, $param:ident: $type:ty)* $(,)?) -> jsonrpsee::core::SubscriptionResult;
        $($rest:tt)*
    ) => {
        let params = vec![$($to.param::<$type>(stringify!($param), stringify!($type))),*];
        let names = [concat!($prefix, $method), concat!($prefix, $event), concat!($prefix, $end)];
        $to.subscription::<$item>(names, &[$($doc),*], params);
        describe! { @ $to [$prefix] $($rest)* }
    };
}

#[cfg(not(feature = "schema"))]
macro_rules! describe {
    ($($tokens:tt)*) => {};
}
