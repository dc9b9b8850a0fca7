
/* ---- V8's random generator ---- */

/*
 * V8 gives each context, when it first uses Math.random, a seed from a generator of its isolate
 * (v8::base::RandomNumberGenerator). Children would inherit its state, so that all contexts
 * that they create would have the same numbers. V8 exports no function that renews it.
 */
static struct generator { uint64_t seed, state[2]; } *generator;

extern void *isolate(void) __asm__("_ZN2v87Isolate10GetCurrentEv");

/* MurmurHash3's finalizer, by which V8 makes the state from the seed. */
static uint64_t hash(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ h >> 33;
}

/* Reports whether the state follows from the seed, after some numbers. */
static bool is_generator(const struct generator *g)
{
	enum { MOST_NUMBERS = 1 << 10 }; /* a zygote takes some tens */
	uint64_t a = hash(g->seed), b = hash(~a);

	if (!(g->seed >> 48 && g->state[0] >> 48 && g->state[1] >> 48)) /* zero or a pointer, as most memory: saves time */
		return false;
	for (int i = 0; i < MOST_NUMBERS; i++) {
		if (a == g->state[0] && b == g->state[1])
			return true;
		uint64_t t = a ^ a << 23; /* xorshift128+ */
		a = b;
		b = t ^ t >> 17 ^ b ^ b >> 26;
	}
	return false;
}

/* Copies memory that may not exist. Returns how much does. */
static ssize_t peek(uintptr_t at, void *to, size_t size)
{
	struct iovec own = { to, size }, from = { (void *)at, size };

	return process_vm_readv(getpid(), &own, 1, &from, 1, 0);
}

/* Finds the generator: one of the fields of the isolate points to it. malloc has allocated it, below the end of the
 * main thread's heap. */
static const char *find_generator(void)
{
	static uintptr_t field[32 << 10]; /* an isolate of Node 24 has some 8,000 */
	ssize_t n = peek((uintptr_t)isolate(), field, sizeof(field));
	const uintptr_t end = (uintptr_t)sbrk(0), most = 1 << 30;

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*field); i++) {
		struct generator g;

		if (end - field[i] > most || field[i] % _Alignof(max_align_t) || peek(field[i], &g, sizeof(g)) != sizeof(g) || !is_generator(&g))
			continue;
		generator = (struct generator *)field[i];
		return NULL;
	}
	return "V8's random generator is not where it is expected";
}

static void renew_generator(void)
{
	must(STEP_LOOP, getrandom(generator->state, sizeof(generator->state), 0));
}
