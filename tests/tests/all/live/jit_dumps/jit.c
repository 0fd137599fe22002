/* A program with a JIT whose code only the rules in its jitdump lead out of: it moves the stack
   pointer by a number of bytes that is known at run time, has no frame pointer, and goes to its end
   by a jump through a register. Arguments: path of the jitdump, milliseconds. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BEGINNING "push %rbx; mov %rsp, %rbx; sub %rdx, %rsp;"
#define END(NAME) "lea 1f(%rip), %rax; jmp *%rax; ud2; 1: mov %rbx, %rsp; pop %rbx; " NAME "_last: ret; " NAME "_end: nop;"
__asm__(".text; outer:" BEGINNING "call *%rsi;" END("outer"));
__asm__(".text; inner:" BEGINNING "2: dec %rdi; jnz 2b;" END("inner"));
extern char outer[], outer_last[], outer_end[], inner[], inner_last[], inner_end[];

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* The rules: an entry for code of this size, whose last instruction is at `last`. */
static void write_rules(FILE *dump, uint32_t size, uint8_t last) {
    uint8_t rules[] = {
        20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,
        0x0c, 7, 8, 0x90, 1, 0, 0,                      /* CFA: rsp + 8 */
        28, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x41, 0x0e, 16, 0x83, 2,                        /* after the push: rsp + 16 */
        0x43, 0x0d, 3,                                  /* after the mov: rbx + 16 */
        0x02, last - 4, 0x0c, 7, 8, 0xc3, 0,            /* after the pop: rsp + 8 */
        0, 0, 0, 0,
    };
    /* The entry is relative to where perf puts it: behind the code. */
    int32_t start = -(int32_t)((size + 7 & ~7u) + 32);
    memcpy(rules + 32, &start, 4);
    memcpy(rules + 36, &size, 4);
    uint32_t head[2] = {4, 40 + sizeof rules};
    uint64_t words[4] = {now(), sizeof rules, 0, sizeof rules};
    fwrite(head, 1, 8, dump);
    fwrite(words, 1, 32, dump);
    fwrite(rules, 1, sizeof rules, dump);
}

static void *load(FILE *dump, char *to, const char *name, char *from, char *last, char *end) {
    uint64_t size = end - from;
    memcpy(to, from, size);
    write_rules(dump, size, last - from);
    uint32_t head[2] = {0, 56 + strlen(name) + 1 + size}, ids[2] = {getpid(), getpid()};
    uint64_t time = now(), place[4] = {(long)to, (long)to, size, 0};
    fwrite(head, 1, 8, dump);
    fwrite(&time, 1, 8, dump);
    fwrite(ids, 1, 8, dump);
    fwrite(place, 1, 32, dump);
    fwrite(name, 1, strlen(name) + 1, dump);
    fwrite(to, 1, size, dump);
    fflush(dump);
    return to;
}

static volatile long calls;
__attribute__((noinline, noclone)) void run(void (*code)(long, void *, long), void *callee, long bytes) {
    code(1000000, callee, bytes);
    calls++;
}

int main(int argc, char **argv) {
    char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *dump = fopen(argv[1], "w+");
    uint32_t head[10] = {0x4a695444, 1, 40, 62, 0, getpid()};
    fwrite(head, 1, 40, dump);
    fflush(dump);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    void *callee = load(dump, code, "jit_inner", inner, inner_last, inner_end);
    void *caller = load(dump, code + 512, "jit_outer", outer, outer_last, outer_end);
    uint64_t end = now() + atol(argv[2]) * 1000000ull;
    for (long bytes = 40; now() < end; bytes = bytes % 2000 + 40) run(caller, callee, bytes);
    return argc > 3;
}
