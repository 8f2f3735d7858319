// Preloaded into a training program: counts its calls of the allocator, and writes at its end what they were by each
// line "step N loss ..." that a rank puts into its log, to $COUNT_ALLOCATIONS.<process>:
//
//   <thread> <step> <calls> <of these by libraries> <blocks in use> <written KiB> <of these OpenBLAS's buffers>
//
// A call belongs to who called malloc; those of C++ come from libstdc++ and count as the program's. "Libraries" are the
// MPI library and its parts, OpenBLAS, and the X of "libX.so" that they bring along.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library's own, under names that are not replaced.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_long calls, library_calls, blocks;

static int is_library(void *caller) {
  static const char *const names[] = {"libmpi", "libopen-", "mca_", "libopenblas", "libpmix", "libhwloc", "libevent", "libuc", "libnuma"};
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
    return 0;
  const char *slash = strrchr(info.dli_fname, '/');
  const char *name = slash != NULL ? slash + 1 : info.dli_fname;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strncmp(name, names[i], strlen(names[i])) == 0)
      return 1;
  return 0;
}

static void *count(void *block, void *caller) {
  atomic_fetch_add(&calls, 1);
  atomic_fetch_add(&blocks, block != NULL);
  if (is_library(caller))
    atomic_fetch_add(&library_calls, 1);
  return block;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t bytes) { return count(__libc_malloc(bytes), CALLER); }
void *calloc(size_t n, size_t bytes) { return count(__libc_calloc(n, bytes), CALLER); }
void *memalign(size_t alignment, size_t bytes) { return count(__libc_memalign(alignment, bytes), CALLER); }
void *aligned_alloc(size_t alignment, size_t bytes) { return count(__libc_memalign(alignment, bytes), CALLER); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  *out = count(__libc_memalign(alignment, bytes), CALLER);
  return *out == NULL ? ENOMEM : 0;
}
void *realloc(void *old, size_t bytes) {
  void *block = count(__libc_realloc(old, bytes), CALLER);
  if (old != NULL && (block != NULL || bytes == 0))
    atomic_fetch_sub(&blocks, 1);
  return block;
}
void free(void *block) {
  if (block == NULL)
    return;
  atomic_fetch_add(&calls, 1);
  if (is_library(CALLER))
    atomic_fetch_add(&library_calls, 1);
  atomic_fetch_sub(&blocks, 1);
  __libc_free(block);
}

// OpenBLAS maps buffers for packed matrices, and a multiplication takes the first that is free: a second one when two
// threads multiply at once, which may first happen at any step.
static struct mapping {
  char *base;
  size_t bytes;
} buffers[256];
static atomic_int buffer_count;

void *mmap(void *base, size_t bytes, int protection, int flags, int file, off_t offset) {
  char *const mapped = (char *)syscall(SYS_mmap, base, bytes, protection, flags, file, offset);
  Dl_info info;
  if (mapped != MAP_FAILED && dladdr(CALLER, &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, "/libopenblas") != NULL) {
    const int i = atomic_fetch_add(&buffer_count, 1);
    if (i < (int)(sizeof buffers / sizeof *buffers))
      buffers[i] = (struct mapping){mapped, bytes};
  }
  return mapped;
}

/// KiB of the pages of OpenBLAS's buffers that exist. One thread at a time.
static long in_buffers(void) {
  static unsigned char pages[1 << 20];
  long found = 0;
  for (int i = 0; i < buffer_count && i < (int)(sizeof buffers / sizeof *buffers); ++i) {
    const size_t count = buffers[i].bytes / 4096;
    if (count > sizeof pages || mincore(buffers[i].base, buffers[i].bytes, pages) != 0)
      continue;
    for (size_t page = 0; page < count; ++page)
      found += pages[page] & 1;
  }
  return 4 * found;
}

struct row {
  long thread, step, calls, library_calls, blocks, written, buffers;
};
static struct row rows[1 << 16];
static atomic_long row_count;

/// KiB in pages that the process wrote to, as they are and not as the kernel's lazy counters have it. Pages of code and
/// constants do not count: the kernel maps and drops them by how much memory the machine has left.
static long written(void) {
  char text[1024];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY);
  const long length = file < 0 ? 0 : syscall(SYS_read, file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
  const char *shared = strstr(text, "Shared_Dirty:"), *private = strstr(text, "Private_Dirty:");
  return shared != NULL && private != NULL ? strtol(shared + 13, NULL, 10) + strtol(private + 14, NULL, 10) : 0;
}

ssize_t write(int file, const void *data, size_t bytes) {
  const char *step = bytes > 20 ? memmem(data, 20, " step ", 6) : NULL;
  if (step != NULL && memmem(data, bytes, " loss ", 6) != NULL) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    const long i = atomic_fetch_add(&row_count, 1);
    if (i < (long)(sizeof rows / sizeof *rows))
      rows[i] = (struct row){syscall(SYS_gettid), strtol(step + 6, NULL, 10), calls, library_calls, blocks, written(), in_buffers()};
    pthread_mutex_unlock(&one);
  }
  return syscall(SYS_write, file, data, bytes);
}

__attribute__((destructor)) static void report(void) {
  const char *place = getenv("COUNT_ALLOCATIONS");
  if (place == NULL || row_count == 0)
    return;
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", place, (int)getpid());
  FILE *file = fopen(path, "w");
  for (long i = 0, n = row_count; file != NULL && i < n; ++i)
    fprintf(file, "%ld %ld %ld %ld %ld %ld %ld\n", rows[i].thread, rows[i].step, rows[i].calls, rows[i].library_calls, rows[i].blocks, rows[i].written, rows[i].buffers);
  if (file != NULL)
    fclose(file);
}
