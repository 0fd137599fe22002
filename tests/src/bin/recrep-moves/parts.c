// The library that a function moved to.
static volatile unsigned sum;
__attribute__((noinline)) void parse(void) { for (unsigned i = 0; i < 15000; i++) sum = sum * 5 + i; }
