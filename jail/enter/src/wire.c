/*
 * enter: the way of a process into a jail.
 *
 *     enter FD VERSION
 *
 * It knows no policy. It does the steps of a list that the host hands over, in
 * order, and ends at the first that fails. FD is one end of a stream socket:
 *
 *     host -> enter   struct message | steps * struct step | filter | text
 *                     one byte: MET or ALIVE                 answers CLONED or ARMED
 *     enter -> host   struct report:
 *                     CLONED | pid      this child does the rest; MET answers, if there is STEP_AWAIT
 *                     ARMED | 0         the death signal is set; ALIVE answers
 *                     LISTENS | 0       the filter is on; its listener comes along
 *                     n      | errno    the n-th step failed, counted from 1
 *                     0      | 0        all is set; then
 *                     end of file       the program runs
 *
 * text is strings, each with its NUL; steps name them by where they begin. The
 * first report need not be the one of the clone: the child is as quick as this.
 *
 * The host's own descriptors are open here until the child has closed them, and
 * it has the host's rights until a step gives them up. So it is not dumpable from
 * its first line on: no process in the jail that it enters can trace it, or open
 * its memory or descriptors below /proc. Only executing another program ends that.
 * The image holds this file with mode 0711, which has the same effect where the
 * process that executes it may not read it.
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
#include <unistd.h>

#define VERSION "2"

enum {
	MOST_STEPS = 256,
	MOST_TEXT = 8 << 20,
	STRINGS = 4,         /* of a step */
	ARMED = 0xfffffffd,  /* report.step */
	LISTENS = 0xfffffffe,
	CLONED = 0xffffffff,
	MET = 1,             /* the host's answers */
	ALIVE = 2,
};

struct message { uint32_t steps, instructions, text; };
struct step { uint32_t op, number; uint64_t value; uint32_t text[STRINGS]; };
struct report { uint32_t step, value; };

static int fd;                                 /* the socket */
static uint32_t current;                       /* the step that is being done, from 1; 0: reading the list */
static struct message told;
static struct step list[MOST_STEPS];
static struct sock_filter filter[BPF_MAXINSNS];
static char *text;

/* Reports, with a descriptor if file is one. */
static void report_with(uint32_t step, uint32_t value, int file)
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
	if (sendmsg(fd, &m, MSG_NOSIGNAL) != sizeof(r))
		_exit(127);
}

static void report(uint32_t step, uint32_t value) { report_with(step, value, -1); }

/* A list that can't be read is reported as the step after the last. */
static void fail(int error)
{
	report(current ? current : MOST_STEPS + 1, error);
	_exit(126);
}

static void read_all(void *to, size_t size)
{
	for (char *p = to; size > 0;) {
		ssize_t n = read(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			_exit(127); /* nobody is left to report to */
		if (n < 0)
			fail(errno);
		p += n;
		size -= n;
	}
}

/* Reads the list. That all strings are within text is all that the steps rely on. */
static void read_list(void)
{
	read_all(&told, sizeof(told));
	if (told.steps > MOST_STEPS || told.instructions > BPF_MAXINSNS || told.text > MOST_TEXT)
		fail(EINVAL);
	read_all(list, told.steps * sizeof(list[0]));
	read_all(filter, told.instructions * sizeof(filter[0]));
	text = malloc(told.text + 1);
	if (!text)
		fail(ENOMEM);
	read_all(text, told.text);
	text[told.text] = 0;
	for (uint32_t i = 0; i < told.steps; i++)
		for (int k = 0; k < STRINGS; k++)
			if (list[i].text[k] > told.text)
				fail(EINVAL);
}
