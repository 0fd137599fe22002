//! Tests with rules written by hand.
