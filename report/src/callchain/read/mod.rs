//! Reads a sample's callchain: recorded by the kernel or the hardware, unwound from a copied stack,
//! or with branches in front.

pub(crate) mod branch_info;
pub(crate) mod causes;
pub(crate) mod ends;
pub(crate) mod history;
pub(crate) mod source;
pub(crate) mod words;
