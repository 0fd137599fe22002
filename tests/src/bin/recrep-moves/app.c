// A program whose functions take known shares of the time. Macros give its code other names and places:
// RENAMED, MOVED, INLINED, SPLIT, EXTRACTED. PERCENT is the work of emit.
#define APART __attribute__((noinline))
static volatile unsigned sum;
#define WORK(turns) for (unsigned i = 0; i < (turns) * 100u; i++) sum = sum * 5 + i

#ifdef INLINED
static inline __attribute__((always_inline)) void escape(void) { WORK(120); }
#else
APART static void escape(void) { WORK(120); }
#endif
APART static void render(void) { WORK(100); escape(); }

#ifdef RENAMED
#define parse parse_input
#endif
#ifdef MOVED
void parse(void);
#elif defined SPLIT
APART static void parse_head(void) { WORK(90); }
APART static void parse_tail(void) { WORK(60); }
static inline __attribute__((always_inline)) void parse(void) { parse_head(); parse_tail(); }
#else
APART static void parse(void) { WORK(150); }
#endif

#ifdef EXTRACTED
APART static void scan_word(void) { WORK(80); }
APART static void scan(void) { WORK(120); scan_word(); }
#else
APART static void scan(void) { WORK(200); }
#endif

APART static void emit(void) { WORK(PERCENT); }
APART static void hash(void) { WORK(180); }
APART static void sort(void) { WORK(60); }
APART static void copy(void) { WORK(50); }
APART static void fill(void) { WORK(40); }

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        render(); parse(); scan(); emit(); hash(); sort(); copy(); fill();
    }
}
