// A command of the host: sends its arguments to the host, and does what the host replies.
// Package hostcommand describes the protocol. The program uses no C library.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

enum {
	FAMILY = 0x67616f6c, // Family of the Go half
	ANSWERS = 3,         // descriptor that the host opens; an inherited one is closed
	CHUNK = 64 << 10,
	BROKEN_PIPE = 128 + SIGPIPE, // as if the signal had killed it
	FAILED = 125,
};

// Kinds of frames from the host.
enum { OUTPUT = 1, ERRORS = 2, EXIT = 3, INPUT = 4 }; // the first two are also descriptors

static char buffer[CHUNK];

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");

static long call(long number, long a, long b, long c, long d) {
	register long fourth __asm__("r10") = d;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tbl start\n");

static long call(long number, long a, long b, long c, long d) {
	register long nr __asm__("x8") = number;
	register long first __asm__("x0") = a;
	register long second __asm__("x1") = b;
	register long third __asm__("x2") = c;
	register long fourth __asm__("x3") = d;
	__asm__ volatile("svc 0" : "+r"(first) : "r"(nr), "r"(second), "r"(third), "r"(fourth) : "memory");
	return first;
}
#else
#error "no system calls for this processor"
#endif

static void pause_ms(long ms) {
	struct timespec t = {.tv_sec = 0, .tv_nsec = ms * 1000000};
	call(SYS_nanosleep, (long)&t, 0, 0, 0);
}

// Reads up to n bytes. Returns 0 at the end of the file, and a negative errno.
static long read_some(int fd, void *to, long n) {
	for (;;) {
		long got = call(SYS_read, fd, (long)to, n, 0);
		if (got == -EAGAIN) pause_ms(1); // another process has made it non-blocking
		else if (got != -EINTR) return got;
	}
}

static int read_all(int fd, char *to, long n) {
	for (long at = 0, got; at < n; at += got)
		if ((got = read_some(fd, to + at, n - at)) <= 0) return 0;
	return 1;
}

// Writes n bytes. Returns 0, or a negative errno.
static long write_all(int fd, const char *from, long n) {
	for (long at = 0; at < n;) {
		long put = call(SYS_write, fd, (long)(from + at), n - at, 0);
		if (put == -EAGAIN) pause_ms(1);
		else if (put >= 0) at += put;
		else if (put != -EINTR) return put;
	}
	return 0;
}

static long length(const char *text) {
	long n = 0;
	while (text[n]) n++;
	return n;
}

static long write_text(const char *text) { return write_all(2, text, length(text)); }

static int fail(const char *name, const char *why) {
	write_text(name);
	write_text(": ");
	write_text(why);
	write_text("\n");
	return FAILED;
}

static void put_size(char to[4], uint32_t n) {
	for (int i = 0; i < 4; i++) to[i] = (char)(n >> (24 - 8 * i));
}

static uint32_t size_of(const char from[4]) {
	uint32_t n = 0;
	for (int i = 0; i < 4; i++) n = n << 8 | (unsigned char)from[i];
	return n;
}

// Moves a descriptor away from the place of a standard stream that is closed.
static long above_standard(long fd) {
	if (fd < 0 || fd > 2) return fd;
	long moved = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, ANSWERS + 1, 0);
	call(SYS_close, fd, 0, 0, 0);
	return moved;
}

// Asks the host for the pipes, and waits while it has too many calls of this run.
static long open_call(void) {
	for (long ms = 1;; ms = ms < 64 ? 2 * ms : ms) {
		long fd = call(SYS_socket, FAMILY, SOCK_CLOEXEC, ANSWERS, 0);
		if (fd != -EAGAIN && fd != -EINTR) return above_standard(fd);
		pause_ms(ms);
	}
}

// Errors of sending are ignored: the host's reply says more.
static void send_arguments(int to, char **arguments) {
	uint32_t size = 0;
	char head[4];
	for (char **a = arguments; *a; a++) size += (uint32_t)length(*a) + 1; // execve allows a few MiB
	put_size(head, size);
	long err = write_all(to, head, sizeof head);
	for (char **a = arguments; *a && !err; a++) err = write_all(to, *a, length(*a) + 1);
}

// Waits for input. Returns 0 if the host replies before.
static int wait_for_input(void) {
	struct pollfd both[2] = {{.fd = 0, .events = POLLIN}, {.fd = ANSWERS, .events = POLLIN}};
	while (call(SYS_ppoll, (long)both, 2, 0, 0) < 0) pause_ms(1); // a signal
	return both[1].revents == 0;
}

static void send_input(int to) {
	char head[4];
	for (long got = 1; got > 0 && wait_for_input();) {
		if ((got = read_some(0, buffer, sizeof buffer)) < 0) got = 0; // there is no standard input
		put_size(head, (uint32_t)got);
		if (write_all(to, head, sizeof head) || write_all(to, buffer, got)) return;
	}
}

// Copies n bytes of the host's to a descriptor. Returns 1 if they have ended before, and a
// negative errno if the descriptor can't be written to.
static long copy_output(int to, uint32_t n) {
	while (n > 0) {
		long got = read_some(ANSWERS, buffer, n < sizeof buffer ? n : sizeof buffer);
		if (got <= 0) return 1;
		long err = write_all(to, buffer, got);
		if (err) return err;
		n -= (uint32_t)got;
	}
	return 0;
}

static int run(const char *name, char **arguments) {
	long fd = open_call();
	if (fd < 0) return fail(name, "the host does not serve this command here");
	send_arguments((int)fd, arguments);
	for (char head[5]; read_all(ANSWERS, head, sizeof head);) {
		uint32_t n = size_of(head + 1);
		long err = 0;
		switch (head[0]) {
		case OUTPUT:
		case ERRORS: err = copy_output(head[0], n); break;
		case INPUT: send_input((int)fd); break;
		case EXIT: return (int)n;
		default: err = 1;
		}
		if (err == -EPIPE) return BROKEN_PIPE;
		if (err < 0) return fail(name, "can't write the output");
		if (err > 0) break;
	}
	return fail(name, "the host has ended the call");
}

// Called with the initial stack: argc, argv.
void start(long *stack) {
	long ignore[4] = {(long)SIG_IGN, 0, 0, 0}; // the kernel's struct sigaction, with nothing else set
	char **arguments = (char **)(stack + 1);
	const char *name = "command";
	call(SYS_rt_sigaction, SIGPIPE, (long)ignore, 0, 8);
	if (stack[0] > 0) name = *arguments++;
	call(SYS_exit_group, run(name, arguments), 0, 0, 0);
	__builtin_unreachable();
}
