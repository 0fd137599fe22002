/* Runs one of its programs instruction by instruction, and writes down which: `step KIND STEPS LOG`.
 *
 * The program stops itself where it begins, so that its start takes no steps. At most one thread runs at a time, as on
 * one CPU; which one is known at each step. The log has records of three 64-bit words: kind and thread, a word, a word.
 *
 *   STEP    thread, address of the instruction that comes, 0
 *   SIGNAL  thread, 0, 0              what comes is not executed: a handler is entered, or the process ends
 *   BEGIN   thread, its process, the thread that made it
 *   MAP     thread, address, length; then offset, length of the path; then the path, in whole words
 *   END     thread, 0, 0
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP, SIGNAL, BEGIN, MAP, END };
enum { THREADS = 64, SLICE = 400 };

/* The programs. */

static volatile unsigned sum;

static unsigned collatz(unsigned n) {
    unsigned steps = 0;
    for (; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

__attribute__((noinline)) static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static void loops(long rounds) {
    for (long i = 1; i <= rounds; i++)
        sum += collatz((unsigned)(i % 97 + 2)) + fib((unsigned)(i % 9));
}

typedef unsigned (*operation)(unsigned);
__attribute__((noinline)) static unsigned twice(unsigned x) { return 2 * x; }
__attribute__((noinline)) static unsigned next(unsigned x) { return x + 1; }
__attribute__((noinline)) static unsigned square(unsigned x) { return x * x; }
static operation volatile operations[] = {twice, next, square, fib};

__attribute__((noinline)) static unsigned chosen(unsigned kind, unsigned x) {
    switch (kind) {
    case 0: return x ^ 1;
    case 1: return x + sum;
    case 2: return x * 3;
    case 3: return x >> 2;
    case 4: return x - 7;
    case 5: return ~x;
    case 6: return x << 1;
    default: return operations[kind % 4](x % 7);
    }
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void indirect(long rounds) {
    int numbers[40];
    for (long i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < 40; k++) {
            sum += chosen((unsigned)(i + k * 7) % 11, k) + operations[k % 3](k);
            numbers[k] = (int)((k * 7919u + (unsigned)i) % 101);
        }
        qsort(numbers, 40, sizeof *numbers, compare);
    }
}

static volatile long handled;
static void handler(int signal) {
    handled++;
    if (signal == SIGUSR1 && handled % 3 == 0)
        raise(SIGUSR2);
    sum += fib(3);
}

static void signals(long rounds) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    for (long i = 0; i < rounds; i++) {
        raise(SIGUSR1);
        kill(getpid(), SIGUSR1);
        sum += collatz(27);
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        pthread_mutex_lock(&lock);
        sum += fib((unsigned)(i % 8));
        pthread_mutex_unlock(&lock);
        sum += collatz((unsigned)(i % 50 + 2));
    }
    return NULL;
}

static void threads(long rounds) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, worker, (void *)(rounds / 4 + 1));
    worker((void *)(rounds / 4 + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

static void forks(long rounds) {
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            loops(rounds / 4 + 1);
            _exit(0);
        }
        loops(rounds / 8 + 1);
        waitpid(child, NULL, 0);
    }
}

/* The stepper. */

static FILE *out;

static void put(uint64_t kind, pid_t tid, uint64_t a, uint64_t b) {
    uint64_t words[3] = {kind << 32 | (uint32_t)tid, a, b};
    fwrite(words, sizeof *words, 3, out);
}

static void maps(pid_t pid) {
    char name[64], line[4200];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *file = fopen(name, "r");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long start, end, offset;
        char flags[8], path[4096] = "";
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, flags, &offset, path) < 4 || flags[2] != 'x')
            continue;
        put(MAP, pid, start, end - start);
        uint64_t words[2] = {offset, strlen(path)};
        fwrite(words, sizeof *words, 2, out);
        fwrite(path, 1, (strlen(path) + 7) / 8 * 8, out);
    }
    if (file)
        fclose(file);
}

enum state { GONE, READY, RUNNING };
static struct thread { pid_t tid; enum state state; int signal; } all[THREADS];

static struct thread *found(pid_t tid) {
    for (int i = 0; i < THREADS; i++)
        if (all[i].state != GONE && all[i].tid == tid)
            return &all[i];
    for (int i = 0; i < THREADS; i++)
        if (all[i].state == GONE) {
            all[i] = (struct thread){tid, RUNNING, 0};
            return &all[i];
        }
    exit(3);
}

static uint64_t address(pid_t tid) {
    struct user_regs_struct registers;
    struct iovec parts = {&registers, sizeof registers};
    return ptrace(PTRACE_GETREGSET, tid, (void *)1, &parts) ? 0 : registers.rip;
}

/* Takes what waitpid told of a thread; returns whether it stands at an instruction now. */
static int taken(struct thread *thread, int status) {
    pid_t tid = thread->tid;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        put(END, tid, 0, 0);
        thread->state = GONE;
        return 0;
    }
    thread->state = READY;
    int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_VFORK) {
        unsigned long child = 0;
        ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child);
        put(BEGIN, (pid_t)child, event == PTRACE_EVENT_CLONE ? 0 : child, (uint64_t)tid);
        found((pid_t)child);
        /* Still in the system call. */
        ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL);
        thread->state = RUNNING;
        return 0;
    }
    /* New threads begin with a SIGSTOP. */
    if (signal == SIGSTOP || signal == SIGTRAP)
        return 1;
    thread->signal = signal;
    return 1;
}

static int step(struct thread *thread) {
    if (thread->signal && thread->signal != SIGCHLD)
        put(SIGNAL, thread->tid, 0, 0);
    int signal = thread->signal;
    thread->signal = 0;
    thread->state = RUNNING;
    return ptrace(PTRACE_SINGLESTEP, thread->tid, NULL, (void *)(long)signal) == 0;
}

/* Steps all threads, one at a time, up to so many steps. */
static void follow(long steps) {
    long done = 0, idle = 0;
    while (done < steps) {
        int alive = 0, moved = 0;
        for (int i = 0; i < THREADS && done < steps; i++) {
            struct thread *thread = &all[i];
            for (int slice = 0; slice < SLICE && thread->state != GONE && done < steps; slice++) {
                alive = 1;
                if (thread->state == READY) {
                    put(STEP, thread->tid, address(thread->tid), 0);
                    done++;
                    if (!step(thread))
                        break;
                }
                int status, tries = 0;
                pid_t got;
                while ((got = waitpid(thread->tid, &status, __WALL | WNOHANG)) == 0 && ++tries < 2000)
                    ;
                if (got != thread->tid)
                    break; /* It waits in a system call. */
                moved = 1;
                taken(thread, status);
            }
        }
        if (!alive || (!moved && ++idle > 1000))
            break;
        if (!moved)
            usleep(100);
    }
    for (int i = 0; i < THREADS; i++)
        if (all[i].state == READY)
            put(STEP, all[i].tid, address(all[i].tid), 0);
}

int main(int count, char **args) {
    if (count < 4)
        return 2;
    const char *kinds[] = {"loops", "indirect", "signals", "threads", "forks"};
    void (*programs[])(long) = {loops, indirect, signals, threads, forks};
    long steps = atol(args[2]), rounds = steps / 20 + 1;
    for (int kind = 0; kind < 5; kind++) {
        if (strcmp(args[1], kinds[kind]))
            continue;
        out = fopen(args[3], "w");
        pid_t child = fork();
        if (child == 0) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            raise(SIGSTOP);
            programs[kind](rounds);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        ptrace(PTRACE_SETOPTIONS, child, NULL,
               (void *)(long)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL));
        put(BEGIN, child, (uint64_t)child, 0);
        maps(child);
        found(child)->state = READY;
        follow(steps);
        for (int i = 0; i < THREADS; i++)
            if (all[i].state != GONE)
                kill(all[i].tid, SIGKILL);
        return fclose(out) ? 1 : 0;
    }
    return 2;
}
