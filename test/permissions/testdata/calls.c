/*
 * calls: makes system calls on files, without Node or a C library.
 *
 *     calls DIR NAME...        a line for each name: its errno, 0 for success
 *
 * The call of a name works in DIR/NAME, which has a file and another, a folder and a
 * full one, and a link. DIR/prog is a program. With -DADDON this is the same as an
 * addon of Node: call(DIR, NAME) returns the errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
enum { HERE = -100, NOREPLACE = 1, EXCHANGE = 2, SETFLAGS = 0x40086602 };

static int at; /* the call's folder, opened with O_PATH, which needs no right */
static char prog[4200];

static int done(long r) { return r < 0 ? errno : 0; }

static int ended(int fd)
{
	int e = done(fd);
	if (fd >= 0)
		close(fd);
	return e;
}

static int opens(const char *name, int flags) { return ended(syscall(SYS_openat, at, name, flags, 0644)); }

/* with opens a file and calls a function with it. */
#define with(name, flags, what) ({ \
	int fd = syscall(SYS_openat, at, name, flags, 0644), e = done(fd); \
	if (fd >= 0) { e = done(what); close(fd); } \
	e; })

static void inside(const char *name, char path[100]) { snprintf(path, 100, "/proc/self/fd/%d/%s", at, name); }
#define by_path(name, what) ({ char path[100]; inside(name, path); done(what); })

static int open_read(void) { return opens("file", O_RDONLY); }
static int open_write(void) { return opens("file", O_WRONLY); }
static int open_both(void) { return opens("file", O_RDWR); }
static int open_append(void) { return opens("file", O_WRONLY | O_APPEND); }
static int open_create(void) { return opens("new", O_WRONLY | O_CREAT | O_EXCL); }
static int open_trunc(void) { return opens("file", O_WRONLY | O_TRUNC); }
static int open_read_trunc(void) { return opens("file", O_RDONLY | O_TRUNC); }
static int open_link(void) { return opens("link", O_RDONLY); }
static int open_path(void) { return opens("file", O_PATH); }
static int creats(const char *name) { char path[100]; inside(name, path); return ended(creat(path, 0644)); }
static int creat_new(void) { return creats("new"); }
static int creat_old(void) { return creats("file"); }
static int mknod_file(void) { return done(syscall(SYS_mknodat, at, "new", S_IFREG | 0644, 0)); }
static int mknod_fifo(void) { return done(syscall(SYS_mknodat, at, "new", S_IFIFO | 0644, 0)); }
static int mknod_device(void) { return done(syscall(SYS_mknodat, at, "new", S_IFCHR | 0644, makedev(1, 3))); }
static int mkdirs(void) { return done(syscall(SYS_mkdirat, at, "new", 0755)); }
static int unlinks(void) { return done(syscall(SYS_unlinkat, at, "file", 0)); }
static int rmdirs(void) { return done(syscall(SYS_unlinkat, at, "folder", AT_REMOVEDIR)); }
static int moves(const char *from, const char *to, int flags) { return done(syscall(SYS_renameat2, at, from, at, to, flags)); }
static int rename_file(void) { return moves("file", "new", NOREPLACE); }
static int rename_over(void) { return moves("file", "other", 0); }
static int rename_folder(void) { return moves("full", "new", 0); }
static int rename_away(void) { return moves("file", "folder/new", 0); }
static int exchange(void) { return moves("file", "other", EXCHANGE); }
static int exchange_folder(void) { return moves("file", "full", EXCHANGE); }
static int link_here(void) { return done(syscall(SYS_linkat, at, "file", at, "new", 0)); }
static int link_away(void) { return done(syscall(SYS_linkat, at, "file", at, "folder/new", 0)); }
static int symlinks(void) { return done(syscall(SYS_symlinkat, "file", at, "new")); }
static int readlinks(void) { char b[64]; return done(syscall(SYS_readlinkat, at, "link", b, sizeof(b))); }
static int statxs(void) { struct statx s; return done(syscall(SYS_statx, at, "file", 0, STATX_ALL, &s)); }
static int accesses(void) { return done(syscall(SYS_faccessat, at, "file", F_OK)); }
static int chmods(void) { return done(syscall(SYS_fchmodat, at, "file", 0600)); }
static int chmods2(void) { return done(syscall(SYS_fchmodat2, at, "file", 0600, 0)); }
static int chmod_open(void) { return with("file", O_RDONLY, syscall(SYS_fchmod, fd, 0600)); }
static int chowns(void) { return done(syscall(SYS_fchownat, at, "file", getuid(), getgid(), 0)); }
static int touches(void) { return done(syscall(SYS_utimensat, at, "file", NULL, 0)); }
static int touch_open(void) { return with("file", O_RDONLY, syscall(SYS_utimensat, fd, NULL, NULL, 0)); }
static int xattr_read(void) { char b[9]; int e = by_path("file", syscall(SYS_getxattr, path, "user.x", b, sizeof(b))); return e == ENODATA ? 0 : e; }
static int chattr(void) { long f = 0; return with("file", O_RDONLY, ioctl(fd, SETFLAGS, &f)); }
static int truncates(void) { return by_path("file", syscall(SYS_truncate, path, 1)); }
static int truncate_open(void) { return with("file", O_WRONLY, syscall(SYS_ftruncate, fd, 1)); }
static int lists(void) { char b[4096]; return with(".", O_RDONLY | O_DIRECTORY, syscall(SYS_getdents64, fd, b, sizeof(b))); }
static int map_write(void) { return with("file", O_RDWR, mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0); }
static int punch(void) { return with("file", O_WRONLY, syscall(SYS_fallocate, fd, 3, 0, 2)); }
static int tmpfile_open(void) { return opens(".", O_WRONLY | O_TMPFILE); }

static int tmpfile_link(void)
{
	char path[64];
	return with(".", O_WRONLY | O_TMPFILE,
		(snprintf(path, sizeof(path), "/proc/self/fd/%d", fd), syscall(SYS_linkat, HERE, path, at, "new", AT_SYMLINK_FOLLOW)));
}

static int copies(long (*copy)(int, int))
{
	int in = syscall(SYS_openat, at, "file", O_RDONLY), e = done(in);
	if (in >= 0)
		e = with("other", O_WRONLY, copy(in, fd));
	close(in);
	return e;
}

static long by_range(int in, int out) { return syscall(SYS_copy_file_range, in, NULL, out, NULL, 4, 0); }
static int copy_range(void) { return copies(by_range); }

static int handle(void)
{
	unsigned h[64] = { 128 };
	int id;
	return done(syscall(SYS_name_to_handle_at, at, "file", h, &id, 0));
}

static int binds(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	inside("new", a.sun_path);
	int e = done(bind(s, (void *)&a, sizeof(a)));
	close(s);
	return e;
}

/* Calls on folders. */
static int watches(void)
{
	int i = inotify_init1(0), e = by_path(".", inotify_add_watch(i, path, IN_CREATE));
	close(i);
	return e;
}

/* runs starts a program in a child, and returns the errno. */
static int runs(void (*start)(char **))
{
	char *argv[] = { "prog", NULL };
	int fds[2], e = 0, status;
	if (pipe2(fds, O_CLOEXEC))
		return errno;
	int pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 1);
		start(argv);
		e = errno;
		_exit(write(fds[1], &e, sizeof(e)) != sizeof(e));
	}
	close(fds[1]);
	if (read(fds[0], &e, sizeof(e)) < 0)
		e = errno;
	close(fds[0]);
	return waitpid(pid, &status, 0) == pid ? e : errno;
}

static void by_name(char **argv) { syscall(SYS_execve, prog, argv, NULL); }
static void by_open(char **argv, int flags)
{
	int fd = open(prog, flags);
	if (fd >= 0)
		syscall(SYS_execveat, fd, "", argv, NULL, AT_EMPTY_PATH);
}

static void by_fd(char **argv) { by_open(argv, O_RDONLY); }
static void by_path_fd(char **argv) { by_open(argv, O_PATH); }

static void by_memory(char **argv)
{
	int in = open(prog, O_RDONLY), m = syscall(SYS_memfd_create, "m", 0);
	if (in < 0 || m < 0)
		return;
	char part[4096];
	for (ssize_t n; (n = read(in, part, sizeof(part))) > 0;)
		if (write(m, part, n) != n)
			return;
	close(in);
	syscall(SYS_execveat, m, "", argv, NULL, AT_EMPTY_PATH);
}

static int execs(void) { return runs(by_name); }
static int exec_fd(void) { return runs(by_fd); }
static int exec_path_fd(void) { return runs(by_path_fd); }
static int exec_memory(void) { return runs(by_memory); }
static int exec_here(void) { by_name((char *[]){ "prog", NULL }); return errno; } /* only under a filter that refuses it */

#define C(f) { #f, f }
static const struct { const char *name; int (*make)(void); } calls[] = {
	C(open_read), C(open_write), C(open_both), C(open_append), C(open_create), C(open_trunc), C(open_read_trunc), C(open_link), C(open_path),
	C(creat_new), C(creat_old), C(mknod_file), C(mknod_fifo), C(mknod_device), C(mkdirs), C(unlinks), C(rmdirs),
	C(rename_file), C(rename_over), C(rename_folder), C(rename_away), C(exchange), C(exchange_folder), C(link_here), C(link_away), C(symlinks),
	C(readlinks), C(statxs), C(accesses), C(chmods), C(chmods2), C(chmod_open), C(chowns), C(touches), C(touch_open), C(xattr_read), C(chattr),
	C(truncates), C(truncate_open), C(lists), C(map_write), C(punch), C(tmpfile_open), C(tmpfile_link), C(copy_range), C(handle), C(binds),
	C(watches), C(execs), C(exec_fd), C(exec_path_fd), C(exec_memory), C(exec_here),
};

static int call(const char *dir, const char *name)
{
	char path[8200];

	snprintf(prog, sizeof(prog), "%s/prog", dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	at = open(path, O_PATH);
	if (at < 0)
		return errno;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name)) {
			int e = calls[i].make();
			close(at);
			return e;
		}
	return -1;
}

#ifndef ADDON
int main(int argc, char **argv)
{
	if (argc < 3) /* as prog */
		return 0;
	for (int i = 2; i < argc; i++) {
		printf("%d\n", call(argv[1], argv[i]));
		fflush(stdout);
	}
	return 0;
}
#else
/* Declared here because an image has no headers. */
typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
int napi_create_function(napi_env, const char *, size_t, napi_value (*)(napi_env, napi_callback_info), void *, napi_value *);
int napi_create_int32(napi_env, int32_t, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_value_string_utf8(napi_env, napi_value, char *, size_t, size_t *);

static napi_value js_call(napi_env env, napi_callback_info info)
{
	char text[2][4096] = { 0 };
	napi_value args[2], result = NULL;
	size_t n = 2;

	napi_get_cb_info(env, info, &n, args, NULL, NULL);
	for (size_t i = 0; i < n && i < 2; i++)
		napi_get_value_string_utf8(env, args[i], text[i], sizeof(text[i]), NULL);
	napi_create_int32(env, call(text[0], text[1]), &result);
	return result;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value f;

	if (!napi_create_function(env, "call", SIZE_MAX, js_call, NULL, &f))
		napi_set_named_property(env, exports, "call", f);
	return exports;
}
#endif
