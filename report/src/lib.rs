//! recrep

pub mod resolve;
