/* A disk that fails, for LD_PRELOAD: counts the changes to files below a folder, and makes the n-th one fail.

What it does stands in a file that the processes of a test share, see faulty_disk.py. Its name is in FAULTY_DISK, or is
given to `faulty_disk`. It also keeps what has been written without fsync, and can kill at the n-th change. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4096

struct disk {
    char folder[1024]; /* changes below it count */
    long nth;          /* the change that fails; 0 for none */
    long error;        /* its errno; 0 for success */
    long later;        /* whether all later changes fail, too */
    long half;         /* whether the first write that fails writes half of its bytes, without an error */
    long signal;       /* sent to the process group instead of the n-th change; 0 for none */
    long changes;      /* how many there were */
    struct { unsigned long inode; long synced; } unsynced[FILES]; /* files that a loss of power cuts to this length */
};
static struct disk *disk;

void faulty_disk(const char *path) {
    int fd = open(path, O_RDWR);
    void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    disk = shared == MAP_FAILED ? NULL : shared;
}

__attribute__((constructor)) static void begin(void) {
    if (getenv("FAULTY_DISK")) faulty_disk(getenv("FAULTY_DISK"));
}

static int below(const char *path) {
    size_t length = strlen(disk->folder);
    return length && !strncmp(path, disk->folder, length) && (path[length] == '/' || !path[length]);
}

static int opened_below(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static int path_below(int folder, const char *path) {
    char whole[2 * PATH_MAX];
    if (!path) return 0;
    if (path[0] == '/') return below(path);
    if (folder != AT_FDCWD) return opened_below(folder);
    if (!getcwd(whole, PATH_MAX)) return 0;
    return below(strcat(strcat(whole, "/"), path));
}

/* Count a change: -1 if it fails, 1 if half of its bytes are written, 0 otherwise. */
static int change(int is_write) {
    long n = __atomic_add_fetch(&disk->changes, 1, __ATOMIC_SEQ_CST);
    if (!disk->nth || n < disk->nth || (n > disk->nth && !disk->later)) return 0;
    if (disk->signal && n == disk->nth) {
        kill(0, (int)disk->signal);
        if (disk->signal == SIGKILL) for (;;) pause();
    }
    if (!disk->error) return 0;
    if (is_write && disk->half && __atomic_exchange_n(&disk->half, 0, __ATOMIC_SEQ_CST)) return 1;
    errno = (int)disk->error;
    return -1;
}

/* Remember the length that a file had before this write, or forget the file, which is now on the disk. */
static void keep(int fd, int synced) {
    struct stat file;
    if (fstat(fd, &file) || !S_ISREG(file.st_mode)) return;
    for (long at = 0; at < FILES; at++) {
        unsigned long *inode = &disk->unsynced[(file.st_ino + at) % FILES].inode, none = 0;
        long *length = &disk->unsynced[(file.st_ino + at) % FILES].synced;
        if (*inode == file.st_ino) {
            if (synced) *length = file.st_size;
            else if (file.st_size < *length) *length = file.st_size;
            return;
        }
        if (!*inode && synced) return;
        if (__atomic_compare_exchange_n(inode, &none, file.st_ino, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            *length = file.st_size;
            return;
        }
    }
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & (O_CREAT | O_TRUNC)))
#define OPEN(name)                                                            \
    int name(const char *path, int flags, ...) {                              \
        va_list more; va_start(more, flags);                                  \
        mode_t mode = va_arg(more, mode_t); va_end(more);                     \
        REAL(name);                                                           \
        if (disk && WRITES(flags) && path_below(AT_FDCWD, path) && change(0)) return -1; \
        return real(path, flags, mode);                                       \
    }
#define OPENAT(name)                                                          \
    int name(int folder, const char *path, int flags, ...) {                  \
        va_list more; va_start(more, flags);                                  \
        mode_t mode = va_arg(more, mode_t); va_end(more);                     \
        REAL(name);                                                           \
        if (disk && WRITES(flags) && path_below(folder, path) && change(0)) return -1; \
        return real(folder, path, flags, mode);                               \
    }
#define ON_PATH(name, declared, given, place)                                 \
    int name declared { REAL(name); return disk && place && change(0) ? -1 : real given; }
#define ON_FILE(name, declared, given, synced)                                \
    int name declared {                                                       \
        REAL(name);                                                           \
        if (!disk || !opened_below(fd)) return real given;                    \
        if (change(0)) return -1;                                             \
        if (!synced) keep(fd, 0);                                             \
        int said = real given;                                                \
        keep(fd, synced);                                                     \
        return said;                                                          \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), path_below(AT_FDCWD, path))
ON_PATH(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), path_below(at, path))
ON_PATH(rmdir, (const char *path), (path), path_below(AT_FDCWD, path))
ON_PATH(unlink, (const char *path), (path), path_below(AT_FDCWD, path))
ON_PATH(unlinkat, (int at, const char *path, int flags), (at, path, flags), path_below(at, path))
ON_PATH(rename, (const char *from, const char *to), (from, to), path_below(AT_FDCWD, to))
ON_PATH(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), path_below(b, to))
ON_PATH(symlink, (const char *to, const char *path), (to, path), path_below(AT_FDCWD, path))
ON_PATH(link, (const char *from, const char *to), (from, to), path_below(AT_FDCWD, to))
ON_FILE(fsync, (int fd), (fd), 1)
ON_FILE(fdatasync, (int fd), (fd), 1)
ON_FILE(ftruncate, (int fd, off_t length), (fd, length), 0)
ON_FILE(ftruncate64, (int fd, off64_t length), (fd, length), 0)

/* A function that writes `count` bytes to `fd`. */
#define WRITING(name, declared, given)                                        \
    ssize_t name declared {                                                   \
        REAL(name);                                                           \
        if (disk && opened_below(fd)) {                                       \
            int fails = change(1);                                            \
            if (fails < 0) return -1;                                         \
            keep(fd, 0);                                                      \
            if (fails) count = (count + 1) / 2;                               \
        }                                                                     \
        return real given;                                                    \
    }
WRITING(write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
WRITING(sendfile, (int fd, int from, off_t *at, size_t count), (fd, from, at, count))
WRITING(sendfile64, (int fd, int from, off64_t *at, size_t count), (fd, from, at, count))
