/* Mappings and the tables behind them. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MANY 1000

/* Adjacent mappings with different rights cannot be merged. */
static char *areas(void)
{
	char *p = mmap(NULL, MANY * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	for (int i = 0; i < MANY; i += 2)
		if (mprotect(p + i * 4096, 4096, PROT_NONE))
			return NULL;
	return p;
}

static int anonymous(void) { return areas() ? MANY : -1; }

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static int names(void)
{
	static long n;
	char name[80], *p = areas();

	if (!p)
		return -1;
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%0*ld", 78, n++);
		if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p + i * 4096, 4096, name))
			return i ? i : -1;
	}
	return MANY;
}

/* Shared mappings have an inode each, and no descriptor. */
static int shared(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 1;
}

/* Reading a page that was never written maps the zero page: only the tables are new. */
static int tables(void)
{
	const size_t size = 1ul << 32;
	volatile char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int n = 0;

	if (p == MAP_FAILED)
		return -1;
	madvise((void *)p, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size && going(); i += 1 << 21, n++)
		(void)p[i];
	return n;
}

/* The same with a gigabyte between pages, for the tables of the next level, too. */
static int upper_tables(void)
{
	static uintptr_t next = 1ul << 40;
	volatile char *p;
	int n;

	for (n = 0; n < 100; n++, next += 1ul << 30) {
		p = mmap((void *)next, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == MAP_FAILED)
			return -1;
		(void)p[0];
	}
	return n;
}

static int touched(void)
{
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	for (int i = 0; i < 1 << 20; i += 4096)
		p[i] = 1;
	return 256;
}

static int locked(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED || mlock(p, 4096) ? -1 : 1;
}

/* A page that processes share, and the lists of its mappings. */
static int chains(void)
{
	static char *pages[MANY];
	int i;

	if (steps)
		return 0;
	for (i = 0; i < MANY; i++) {
		pages[i] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (pages[i] == MAP_FAILED || mprotect(pages[i], 4096, PROT_READ))
			return -1;
		pages[i][4096] = 1;
	}
	for (i = 0; i < 60; i++)
		if (fork() == 0)
			for (;;)
				pause();
	return MANY * 60;
}

static int huge(void)
{
	void *p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	return *(char *)p = 1, 1;
}

static int huge_files(void) { return kept(memfd_create("", MFD_HUGETLB)); }

const struct mode memory_modes[] = {
	{ "mappings", SPREAD, anonymous },
	{ "mapping names", SPREAD, names },
	{ "shared mappings", SPREAD, shared },
	{ "page tables", SPREAD, tables },
	{ "upper page tables", SPREAD, upper_tables },
	{ "pages", SPREAD, touched },
	{ "locked pages", SPREAD, locked },
	{ "reverse mappings", SINGLE, chains },
	{ "huge pages", SINGLE, huge },
	{ "huge memfd", SPREAD, huge_files },
	{ 0 },
};
