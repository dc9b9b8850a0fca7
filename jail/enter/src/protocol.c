/*
 * enter: runs before the program of a process in a jail.
 *
 *     enter FD VERSION
 *
 * It executes a list of steps that the host sends, in order, and exits at the first that
 * fails. It contains no policy. FD is one end of a stream socket:
 *
 *     host -> enter   struct header | steps * struct step | filter | text
 *                     one byte: CONTINUE or ALIVE            replies to CLONED or ARMED
 *     enter -> host   struct report:
 *                     CLONED | pid      this child continues; CONTINUE replies, if the list
 *                                       has STEP_AWAIT_HOST; a pidfd is attached if
 *                                       STEP_SUPERVISE reports the process that it waits for
 *                     ARMED | 0         the death signal is set; ALIVE replies
 *                     LISTENER | 0      the filter is loaded; its listener is attached
 *                     n      | errno    the n-th step failed, counted from 1
 *                     0      | 0        all steps but the execve are done; then
 *                     end of file       the program runs
 *
 * text is a sequence of NUL-terminated strings; steps refer to them by offset. The report
 * of the clone need not be the first: the child runs at the same time.
 *
 * The host's descriptors are open here until the child has closed them, and the process
 * has the host's rights until a step drops them. So it is not dumpable from the start: no
 * process of the jail that it enters can trace it, or open its memory or descriptors below
 * /proc. Only execve ends that. The image has this file with mode 0711, which has the same
 * effect if the process that executes it may not read it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION "3"

enum {
	MAX_STEPS = 256,
	MAX_TEXT = 8 << 20,
	STRINGS = 4,         /* in a step */
	ARMED = 0xfffffffd,  /* report.step */
	LISTENER = 0xfffffffe,
	CLONED = 0xffffffff,
	CONTINUE = 1,        /* the host's replies */
	ALIVE = 2,
};

struct header { uint32_t steps, instructions, text; };
struct step { uint32_t op, number; uint64_t value; uint32_t text[STRINGS]; };
struct report { uint32_t step, value; };

static int fd;                                 /* the socket */
static uint32_t current;                       /* the current step, from 1; 0: reading the list */
static struct header header;
static struct step list[MAX_STEPS];
static struct sock_filter filter[BPF_MAXINSNS];
static char *text;

/* Sends a report, with a descriptor unless file is negative. Returns false if the host is dead. */
static bool send_report(uint32_t step, uint32_t value, int file)
{
	union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct report r = { step, value };
	struct iovec v = { &r, sizeof(r) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (file >= 0) {
		control.head = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == sizeof(r);
}

static void report_file(uint32_t step, uint32_t value, int file)
{
	if (!send_report(step, value, file))
		_exit(127);
}

static void report(uint32_t step, uint32_t value) { report_file(step, value, -1); }

/* Errors while reading the list are reported as step MAX_STEPS + 1. */
static void fail(int error)
{
	report(current ? current : MAX_STEPS + 1, error);
	_exit(126);
}

static void read_all(void *to, size_t size)
{
	for (char *p = to; size > 0;) {
		ssize_t n = read(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			_exit(127); /* the host is gone */
		if (n < 0)
			fail(errno);
		p += n;
		size -= n;
	}
}

/* Reads the list. It checks that all strings are within text; the steps rely on that. */
static void read_list(void)
{
	read_all(&header, sizeof(header));
	if (header.steps > MAX_STEPS || header.instructions > BPF_MAXINSNS || header.text > MAX_TEXT)
		fail(EINVAL);
	read_all(list, header.steps * sizeof(list[0]));
	read_all(filter, header.instructions * sizeof(filter[0]));
	text = malloc(header.text + 1);
	if (!text)
		fail(ENOMEM);
	read_all(text, header.text);
	text[header.text] = 0;
	for (uint32_t i = 0; i < header.steps; i++)
		for (int k = 0; k < STRINGS; k++)
			if (list[i].text[k] > header.text)
				fail(EINVAL);
}
