// Uses as much of the network as it can, until it is killed: "flood MODE HOST PORT".
//
//	connect  opens connections and closes them
//	idle     opens connections and keeps them
//	read     asks for data on connections and reads none of it
//	write    sends on some of them as long as the other side takes it
//	udp      asks the resolver by UDP
//	tcp      asks the resolver by TCP
//	spin     uses no network, only the processors, for comparison
//
// It prints "refused" as soon as something is.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in to;
static int *reported;

static void refused(void)
{
	if (!__atomic_exchange_n(reported, 1, __ATOMIC_SEQ_CST)) {
		puts("refused");
		fflush(stdout);
	}
}

// dial returns a connection, or -1.
static int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

// greeted reports whether the server's first byte arrives.
static int greeted(int fd)
{
	char c;
	if (read(fd, &c, 1) == 1)
		return 1;
	refused();
	return 0;
}

static void flood_connect(void)
{
	for (;;) {
		int fd = dial();
		if (fd < 0)
			continue;
		greeted(fd);
		close(fd);
	}
}

// flood_open keeps connections, and fills them in one direction or in none.
static void flood_open(const char *mode)
{
	static char part[64 << 10];
	for (int open = 0;;) {
		int fd = dial();
		if (fd < 0) {
			usleep(1000); // too many open files
		} else if (!greeted(fd)) {
			close(fd);
		} else if (*mode == 'r') {
			send(fd, "r", 1, MSG_NOSIGNAL);
		} else if (*mode == 'w' && open++ < 16) { // more would be too much memory of the guest
			while (send(fd, part, sizeof part, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
				;
		}
	}
}

static const unsigned char question[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3api\7example\3com\0\0\1\0\1";

static void flood_udp(void)
{
	unsigned char reply[1500];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
		exit(1);
	for (;;) {
		send(fd, question, sizeof question - 1, 0);
		while (recv(fd, reply, sizeof reply, MSG_DONTWAIT) >= 12)
			if ((reply[3] & 15) == 5)
				refused();
	}
}

static void flood_tcp(void)
{
	unsigned char frame[sizeof question + 1] = {0, sizeof question - 1}, reply[1500];
	memcpy(frame + 2, question, sizeof question - 1);
	for (;;) {
		int fd = dial();
		for (int i = 0; fd >= 0 && i < 100; i++) {
			send(fd, frame, sizeof frame, MSG_NOSIGNAL);
			if (recv(fd, reply, sizeof reply, 0) >= 14 && (reply[5] & 15) == 5)
				refused();
		}
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
	inet_pton(AF_INET, argv[2], &to.sin_addr);
	reported = mmap(NULL, sizeof *reported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 3 && fork(); i++)
		;
	if (!strcmp(argv[1], "spin"))
		for (refused();;)
			;
	if (!strcmp(argv[1], "connect"))
		flood_connect();
	else if (!strcmp(argv[1], "udp"))
		flood_udp();
	else if (!strcmp(argv[1], "tcp"))
		flood_tcp();
	flood_open(argv[1]);
}
