/* A disk that fails, or is slow, below one folder: loaded into Java with LD_PRELOAD.
 *
 * DISK_FOLDER names the folder, DISK_CONTROL a file of five ints that whoever watches shares with this process:
 * calls counted so far, number of the call that fails (0: none), its errno, whether it has failed, milliseconds before
 * each rename.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 65536
#define WRITES (O_WRONLY | O_RDWR | O_CREAT)
#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

static struct { int calls, fails_at, number, failed, delay_ms; } *control;
static const char *folder;
static char watched[FILES];

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("DISK_CONTROL");
  folder = getenv("DISK_FOLDER");
  int descriptor = file && folder ? open(file, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0) return;
  void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped != MAP_FAILED) control = mapped;
}

static int below(const char *path) { return control && path && strncmp(path, folder, strlen(folder)) == 0; }

/* 1 when this call is the one that fails. */
static int fails(void) {
  if (__sync_add_and_fetch(&control->calls, 1) != control->fails_at) return 0;
  control->failed = 1;
  errno = control->number;
  return 1;
}

static int opened(int descriptor, const char *path, int flags) {
  if (descriptor >= 0 && descriptor < FILES) watched[descriptor] = (flags & WRITES) && below(path);
  return descriptor;
}

#define OPEN(name)                                                                  \
  int name(const char *path, int flags, ...) {                                      \
    REAL(int, #name, const char *, int, ...);                                       \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    if ((flags & WRITES) && below(path) && fails()) return -1;                      \
    return opened(real(path, flags, mode), path, flags);                            \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                \
  int name(int at, const char *path, int flags, ...) {                              \
    REAL(int, #name, int, const char *, int, ...);                                  \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    if ((flags & WRITES) && below(path) && fails()) return -1;                      \
    return opened(real(at, path, flags, mode), path, flags);                        \
  }
OPENAT(openat)
OPENAT(openat64)

static int watching(int descriptor) { return control && descriptor >= 0 && descriptor < FILES && watched[descriptor]; }

int close(int descriptor) {
  REAL(int, "close", int);
  if (descriptor >= 0 && descriptor < FILES) watched[descriptor] = 0;
  return real(descriptor);
}

ssize_t write(int descriptor, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  if (watching(descriptor) && fails()) return -1;
  return real(descriptor, data, size);
}

int fsync(int descriptor) {
  REAL(int, "fsync", int);
  if (watching(descriptor) && fails()) return -1;
  return real(descriptor);
}

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  if (below(to)) {
    if (fails()) return -1;
    if (control->delay_ms) usleep(control->delay_ms * 1000);
  }
  return real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  if (below(path) && fails()) return -1;
  return real(path, mode);
}
