/* Declarations that the families of modes share. See main.c. */
#ifndef EXHAUST_H
#define EXHAUST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	SINGLE = 0,	/* one process creates all objects: they are bounded by memory or by user */
	SPREAD = 1,	/* as many processes as possible: objects are bounded by process */
};

/*
 * A mode creates objects of one kind. Its step creates one or more of them and returns
 * how many, or -1 with errno set if it cannot. A step returns 0 if there are none left
 * to create.
 */
struct mode {
	const char *name;
	int how;
	int (*step)(void);
};

/* Each family's table ends with an empty row. */
extern const struct mode descriptor_modes[], lock_modes[], pipe_modes[], tree_modes[], local_modes[],
	stream_modes[], datagram_modes[], option_modes[], task_modes[], memory_modes[];

/* A call that a jail refuses: it returns a negative number. */
struct refusal {
	const char *name;
	long (*call)(void);
};

extern const struct refusal refusals[];

/* How many times the step of this process was called before. */
extern long steps;

/* Number of the process among those of a mode, from 0. */
extern int worker;

/* Whether time is left. Steps that create many objects check this. */
bool going(void);

/* Keeps a descriptor: -1 remains -1, others count as one object. */
int kept(int fd);

/* A path that no other call or process uses. */
const char *fresh(const char *folder);

/* A new Landlock ruleset with rules for that many ports. */
int ruleset(int rules);

#endif
