// A process with code in anonymous memory and a map of its names, as JITs write it: tiers, folders of
// scripts and numbers of generated classes are those of this run. The argument is the folder.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline, aligned(64))) static unsigned work(unsigned turns) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < turns; i++) sum = sum * 5 + i;
    return sum;
}
__attribute__((noinline, aligned(64))) static void end_of_work(void) {}

typedef unsigned (*code)(unsigned);
static char *memory;
static FILE *map;
static long seed;

// Returns a copy of the code under a name; JITs place it anywhere.
static code made(const char *name) {
    size_t size = (char *)end_of_work - (char *)work;
    memory += 4096 + (seed % 7) * 64;
    memcpy(memory, (char *)work, size);
    fprintf(map, "%lx %zx %s\n", (unsigned long)memory, size, name);
    return (code)memory;
}

int main(int argc, char **argv) {
    char path[64], name[6][512];
    const char *folder = argc > 1 ? argv[1] : "";
    seed = (long)getpid() * 31 + time(NULL);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    map = fopen(path, "w");
    memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(name[0], sizeof name[0], "JS:~parse file://%s/app.js:10:5", folder);
    snprintf(name[1], sizeof name[1], "JS:*parse file://%s/app.js:10:5", folder);
    snprintf(name[2], sizeof name[2], "py::render:%s/app.py", folder);
    snprintf(name[3], sizeof name[3], "App$$Lambda$%ld/0x%lx.compare", seed % 97, seed * 8);
    snprintf(name[4], sizeof name[4], "jdk.proxy2.$Proxy%ld.get", seed % 89);
    snprintf(name[5], sizeof name[5], "App.emit");
    code all[6];
    for (int i = 0; i < 6; i++) all[i] = made(name[i]);
    fclose(map);
    unsigned percent = seed % 80 + 10;
    for (int round = 0; round < ROUNDS; round++) {
        all[0](800 * percent); all[1](800 * (100 - percent));
        all[2](66000); all[3](53000); all[4](40000); all[5](266 * PERCENT);
    }
    // Who reads the recording needs the map.
    puts(path);
}
