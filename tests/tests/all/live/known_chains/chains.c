// Parts whose callchains are known: each burns time in a function whose name ends in _leaf, and
// prints the functions of this program that lead there, outermost first, as "leaf: main;…".
#define _GNU_SOURCE
#include <alloca.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FN __attribute__((noinline, noclone, noipa))
#define EXPECT(leaf, chain) (printf("%s: %s\n", #leaf, chain), fflush(stdout))

static unsigned long per_part;
static volatile unsigned long sink;
// What makes a call no tail call.
#define AFTER sink++


#define BURN for (unsigned long i_ = 0; i_ < per_part; i_++) sink += i_

FN void plain_leaf(void) { BURN; }
FN void plain_b(void) { plain_leaf(); AFTER; }
FN void plain_a(void) { plain_b(); AFTER; }

FN void deep_leaf(void) { BURN; }
FN void deep_a(int n) { if (n) deep_a(n - 1); else deep_leaf(); AFTER; }

static int burned;
FN int sorted_leaf(const void *a, const void *b) {
    for (unsigned long i = 0; i < per_part / 400; i++) sink += i;
    return *(const int *)a - *(const int *)b;
}
FN void sorted_a(void) {
    int v[100];
    for (int i = 0; i < 100; i++) v[i] = (i * 37) % 101;
    qsort(v, 100, sizeof *v, sorted_leaf); AFTER;
}

FN int found_leaf(const void *key, const void *b) {
    for (unsigned long i = 0; i < per_part / 8; i++) sink += i;
    return *(const int *)key - *(const int *)b;
}
FN void found_a(void) {
    int v[256], key = 201;
    for (int i = 0; i < 256; i++) v[i] = i;
    burned += bsearch(&key, v, 256, sizeof *v, found_leaf) != 0; AFTER;
}

FN void wide_leaf(char *p) { BURN; p[1] = 1; }
FN void wide_a(void) { char room[4096]; memset(room, 0, sizeof room); wide_leaf(room); sink += room[3]; }
FN void wide_b(void) { char room[4096]; memset(room, 0, sizeof room); wide_a(); sink += room[3]; }

FN void huge_leaf(char *p) { BURN; p[1] = 1; }
FN void huge_a(void) { char room[32768]; memset(room, 0, sizeof room); huge_leaf(room); sink += room[3]; }

FN void raised_leaf(void) { BURN; }
FN void on_raise(int s) { (void)s; raised_leaf(); AFTER; }
FN void raised_a(void) { signal(SIGUSR1, on_raise); raise(SIGUSR1); AFTER; }

static volatile int rang;
FN void timer_leaf(void) { BURN; }
FN void on_timer(int s) { (void)s; timer_leaf(); rang = 1; AFTER; }
FN void timer_spin(void) { while (!rang) __asm__ volatile("" ::: "memory"); }
FN void timer_a(void) {
    signal(SIGALRM, on_timer);
    struct itimerval t = {{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &t, 0);
    timer_spin(); AFTER;
}

FN void alternate_leaf(void) { BURN; }
FN void on_alternate(int s) { (void)s; alternate_leaf(); AFTER; }
FN void alternate_a(void) {
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, 0);
    raise(SIGUSR2); AFTER;
}

FN void nested_leaf(void) { BURN; }
FN void on_nested_b(int s) { (void)s; nested_leaf(); AFTER; }
FN void on_nested_a(int s) { (void)s; raise(SIGHUP); AFTER; }
FN void nested_a(void) { signal(SIGUSR1, on_nested_a); signal(SIGHUP, on_nested_b); raise(SIGUSR1); AFTER; }

static jmp_buf back;
FN __attribute__((noreturn)) void gone_leaf(void) { BURN; longjmp(back, 1); }
FN __attribute__((noreturn)) void gone_b(int x) { sink += x; gone_leaf(); }
FN void gone_a(void) { if (!setjmp(back)) gone_b(3); AFTER; }

FN void alloca_leaf(char *p) { BURN; p[0] = 1; }
FN void alloca_a(int n) { char *p = alloca(n); alloca_leaf(p); sink += p[0]; }

FN void vla_leaf(char *p) { BURN; p[0] = 1; }
FN void vla_a(int n) { char p[n]; vla_leaf(p); sink += p[0]; }

static ucontext_t outside, inside;
FN void coroutine_leaf(void) { BURN; }
FN void coroutine_b(void) { coroutine_leaf(); AFTER; }
FN void coroutine_start(void) { coroutine_b(); AFTER; }
FN void coroutine_a(void) {
    static char room[65536];
    getcontext(&inside);
    inside.uc_stack.ss_sp = room; inside.uc_stack.ss_size = sizeof room; inside.uc_link = &outside;
    makecontext(&inside, coroutine_start, 0);
    swapcontext(&outside, &inside); AFTER;
}

FN void thread_leaf(void) { BURN; }
FN void thread_b(void) { thread_leaf(); AFTER; }
FN void *thread_start(void *x) { thread_b(); AFTER; return x; }
FN int in_thread_leaf(const void *a, const void *b) {
    for (unsigned long i = 0; i < per_part / 400; i++) sink += i;
    return *(const int *)a - *(const int *)b;
}
FN void *sorting_start(void *x) {
    int v[100];
    for (int i = 0; i < 100; i++) v[i] = (i * 37) % 101;
    qsort(v, 100, sizeof *v, in_thread_leaf); AFTER; return x;
}

FN void jumped_leaf(void) { BURN; }
FN int jumped_b(void) { jumped_leaf(); AFTER; return 1; }
FN __attribute__((optimize("O2"))) int jumped_by(int x) { if (x) { AFTER; } return jumped_b(); }
FN void jumped_a(void) { burned += jumped_by(1); AFTER; }

// A frame addressed by rax, as cipher code has it.
void by_rax_b(void);
FN void by_rax_leaf(void) { BURN; }
__asm__(".text\n.globl by_rax_b\n.type by_rax_b,@function\nby_rax_b:\n.cfi_startproc\n"
    "movq %rsp,%rax\n.cfi_def_cfa_register %rax\npushq %rbx\n.cfi_offset %rbx,-16\npushq %rbp\n.cfi_offset %rbp,-24\n"
    "pushq %r15\n.cfi_offset %r15,-32\nsubq $128,%rsp\nandq $-64,%rsp\nmovq %rax,(%rsp)\nmovq %rax,%rbx\n.cfi_def_cfa_register %rbx\n"
    "movq $-1,%rbp\ncall by_rax_leaf\nmovq (%rsp),%rax\n.cfi_def_cfa_register %rax\nmovq -24(%rax),%r15\n.cfi_restore %r15\n"
    "movq -16(%rax),%rbp\n.cfi_restore %rbp\nmovq -8(%rax),%rbx\n.cfi_restore %rbx\nleaq (%rax),%rsp\n.cfi_def_cfa_register %rsp\nret\n"
    ".cfi_endproc\n.size by_rax_b,.-by_rax_b\n");
FN void by_rax_a(void) { by_rax_b(); AFTER; }

// Code without rules: with a frame pointer, and a leaf without a frame.
void no_rules_b(void);
FN void no_rules_leaf(void) { BURN; }
__asm__(".globl no_rules_b\n.type no_rules_b,@function\nno_rules_b:\npushq %rbp\nmovq %rsp,%rbp\nsubq $64,%rsp\ncall no_rules_leaf\nleave\nret\n"
    ".size no_rules_b,.-no_rules_b\n");
FN void no_rules_a(void) { no_rules_b(); AFTER; }
void bare_leaf(unsigned long n);
__asm__(".globl bare_leaf\n.type bare_leaf,@function\nbare_leaf:\n1: subq $1,%rdi\njnz 1b\nret\n.size bare_leaf,.-bare_leaf\n");
FN void bare_a(void) { bare_leaf(per_part * 4); AFTER; }

FN void vdso_leaf(void) {
    struct timespec t;
    for (unsigned long i = 0; i < per_part / 20; i++) clock_gettime(CLOCK_MONOTONIC, &t), sink += t.tv_nsec;
}
FN void vdso_a(void) { vdso_leaf(); AFTER; }

FN void kernel_leaf(void) { for (unsigned long i = 0; i < per_part / 100; i++) sink += syscall(SYS_getppid); }
FN void kernel_a(void) { kernel_leaf(); AFTER; }

FN void print_leaf(char *p) { for (unsigned long i = 0; i < per_part / 400; i++) sink += snprintf(p, 100, "%lu %s %g", i, "text", i * 0.5); }
FN void print_a(void) { char p[100]; print_leaf(p); AFTER; }

FN int each_leaf(struct dl_phdr_info *info, size_t size, void *x) {
    (void)info; (void)size; (void)x; for (unsigned long i = 0; i < per_part / 4; i++) sink += i; return 0;
}
FN void each_a(void) { dl_iterate_phdr(each_leaf, 0); AFTER; }

FN void pointer_leaf(void) { BURN; }
static void (*volatile pointer)(void) = pointer_leaf;
FN void pointer_a(void) { pointer(); AFTER; }

FN void many_leaf(int n, ...) { va_list l; va_start(l, n); BURN; sink += va_arg(l, int); va_end(l); }
FN void many_a(double x) { many_leaf(3, 1, x, 2, 3.0, 4, 5, 6, 7, 8, 9, x); AFTER; }

FN void aligned_leaf(char *p) { BURN; p[0] = 1; }
FN void aligned_a(int a, int b, int c, int d, int e, int f, int g, int h) {
    char p[128] __attribute__((aligned(64)));
    memset(p, g + h, sizeof p);
    aligned_leaf(p); sink += p[0] + a + b + c + d + e + f + g + h;
}

struct large { long v[40]; };
FN struct large large_leaf(int x) { struct large l = {{x}}; BURN; return l; }
FN void large_a(void) { sink += large_leaf(3).v[0]; }

// Enough values at once that a compiler without frame pointers uses every register.
FN unsigned long full_leaf(unsigned long a, unsigned long b) {
    unsigned long c = a ^ b, d = a + b, e = a - b, f = a * 3, g = b * 5, h = c * 7, k = d * 11, l = e * 13, m = f ^ g, n = h ^ k;
    for (unsigned long i = 0; i < per_part / 4; i++) {
        a += b ^ i; b += c; c ^= d; d += e; e ^= f; f += g; g ^= h; h += k; k ^= l; l += m; m ^= n; n += a;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ k ^ l ^ m ^ n;
}
FN unsigned long full_b(unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    unsigned long r = 0;
    for (int i = 0; i < 3; i++) { r ^= full_leaf(a, b) + full_leaf(c, d); a += r; b ^= a; c += b; d ^= c; }
    return r ^ a ^ b ^ c ^ d;
}
FN void full_a(void) { sink += full_b(1, 2, 3, 4); }

FN unsigned long tiny_leaf(unsigned long a, unsigned long b) { return a * b + 7; }
FN unsigned long tiny_b(unsigned long a) {
    unsigned long x = a;
    for (unsigned long i = 0; i < per_part / 3; i++) x = tiny_leaf(x, i) ^ a;
    return x;
}
FN void tiny_a(void) { sink += tiny_b(3); }

FN void stubs_leaf(void) { for (unsigned long i = 0; i < per_part / 4; i++) sink += ffsl(i); }
FN void stubs_a(void) { stubs_leaf(); AFTER; }

FN void copied_leaf(char *p, char *q) { for (unsigned long i = 0; i < per_part / 2000; i++) { memcpy(p, q, 32768); sink += p[i & 1023]; } }
FN void copied_a(void) { static char p[32768], q[32768]; copied_leaf(p, q); AFTER; }

FN void math_leaf(void) { double x = 0.5; for (unsigned long i = 0; i < per_part / 40; i++) x = sin(x) + pow(1.0001, x); sink += (unsigned long)x; }
FN void math_a(void) { math_leaf(); AFTER; }

FN void heap_leaf(void) { for (unsigned long i = 0; i < per_part / 80; i++) { char *p = malloc(24 + (i & 1023)); *(volatile char *)p = 1; free(p); } }
FN void heap_a(void) { heap_leaf(); AFTER; }

FN void cleaned_leaf(int *x) { BURN; *x = 1; }
FN void cleaned_a(void) { int x __attribute__((cleanup(cleaned_leaf))) = 0; sink += x; }

FN void child_leaf(void) { BURN; }
FN void child_a(void) {
    pid_t pid = fork();
    if (pid == 0) { child_leaf(); _exit(0); }
    waitpid(pid, 0, 0);
}

FN void ended_leaf(void) { BURN; }
FN void ended_start(void) { ended_leaf(); AFTER; }

static void calibrate(unsigned long milliseconds) {
    struct timespec a, b;
    per_part = 20000000;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (unsigned long i_ = 0; i_ < per_part; i_++) sink += i_;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    double spent = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6;
    per_part = per_part / spent * milliseconds;
}

int main(int argc, char **argv) {
    calibrate(argc > 1 ? strtoul(argv[1], 0, 10) : 100);
    pthread_t thread;
    EXPECT(plain_leaf, "main;plain_a;plain_b;plain_leaf"); plain_a();
    printf("deep_leaf: main"); for (int i = 0; i <= 50; i++) printf(";deep_a"); printf(";deep_leaf\n"); deep_a(50);
    EXPECT(sorted_leaf, "main;sorted_a;sorted_leaf"); sorted_a();
    EXPECT(found_leaf, "main;found_a;found_leaf"); found_a();
    EXPECT(wide_leaf, "main;wide_b;wide_a;wide_leaf"); wide_b();
    EXPECT(huge_leaf, "main;huge_a;huge_leaf"); huge_a();
    EXPECT(raised_leaf, "main;raised_a;on_raise;raised_leaf"); raised_a();
    EXPECT(timer_leaf, "main;timer_a;timer_spin;on_timer;timer_leaf"); timer_a();
    EXPECT(alternate_leaf, "main;alternate_a;on_alternate;alternate_leaf"); alternate_a();
    EXPECT(nested_leaf, "main;nested_a;on_nested_a;on_nested_b;nested_leaf"); nested_a();
    EXPECT(gone_leaf, "main;gone_a;gone_b;gone_leaf"); gone_a();
    EXPECT(alloca_leaf, "main;alloca_a;alloca_leaf"); alloca_a(argc * 1000);
    EXPECT(vla_leaf, "main;vla_a;vla_leaf"); vla_a(argc * 1000);
    EXPECT(coroutine_leaf, "coroutine_start;coroutine_b;coroutine_leaf"); coroutine_a();
    EXPECT(thread_leaf, "thread_start;thread_b;thread_leaf");
    pthread_create(&thread, 0, thread_start, 0); pthread_join(thread, 0);
    EXPECT(in_thread_leaf, "sorting_start;in_thread_leaf");
    pthread_create(&thread, 0, sorting_start, 0); pthread_join(thread, 0);
    EXPECT(jumped_leaf, "main;jumped_a;jumped_b;jumped_leaf"); jumped_a();
    EXPECT(by_rax_leaf, "main;by_rax_a;by_rax_b;by_rax_leaf"); by_rax_a();
    EXPECT(no_rules_leaf, "main;no_rules_a;no_rules_b;no_rules_leaf"); no_rules_a();
    EXPECT(bare_leaf, "main;bare_a;bare_leaf"); bare_a();
    EXPECT(vdso_leaf, "main;vdso_a;vdso_leaf"); vdso_a();
    EXPECT(kernel_leaf, "main;kernel_a;kernel_leaf"); kernel_a();
    EXPECT(print_leaf, "main;print_a;print_leaf"); print_a();
    EXPECT(each_leaf, "main;each_a;each_leaf"); each_a();
    EXPECT(pointer_leaf, "main;pointer_a;pointer_leaf"); pointer_a();
    EXPECT(many_leaf, "main;many_a;many_leaf"); many_a(argc);
    EXPECT(aligned_leaf, "main;aligned_a;aligned_leaf"); aligned_a(1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT(large_leaf, "main;large_a;large_leaf"); large_a();
    EXPECT(full_leaf, "main;full_a;full_b;full_leaf"); full_a();
    EXPECT(tiny_leaf, "main;tiny_a;tiny_b;tiny_leaf"); tiny_a();
    EXPECT(stubs_leaf, "main;stubs_a;stubs_leaf"); stubs_a();
    EXPECT(copied_leaf, "main;copied_a;copied_leaf"); copied_a();
    EXPECT(math_leaf, "main;math_a;math_leaf"); math_a();
    EXPECT(heap_leaf, "main;heap_a;heap_leaf"); heap_a();
    EXPECT(cleaned_leaf, "main;cleaned_a;cleaned_leaf"); cleaned_a();
    EXPECT(child_leaf, "main;child_a;child_leaf"); child_a();
    EXPECT(ended_leaf, "ended_start;ended_leaf"); atexit(ended_start);
    return 0;
}
