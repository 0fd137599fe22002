//! recrep
