// A program that calls into nowhere, by the name of its first argument; the
// second is a library to call after it is closed. It writes the return addresses
// of the functions on its stack, leaf first, to standard error.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int function(int);
struct table {
	long first;
	function *call;
};

static int data[64] = {1};
static void *said[3];

#define SAY(i) (said[i] = __builtin_return_address(0))
#define NOINLINE __attribute__((noinline))

static void say(void) {
	fprintf(stderr, "returns %p %p %p\n", said[0], said[1], said[2]);
}

// Through a register, a member of a table, and as the last thing it does: an
// optimizer makes a jump of that.
NOINLINE int by_register(function *f, int x) {
	volatile char room[40];
	SAY(0);
	say();
	room[3] = x;
	return f(x + room[3]) + room[3];
}

NOINLINE int by_table(struct table *t, int x) {
	SAY(0);
	say();
	return t->call(x + 1) + 1;
}

NOINLINE int by_jump(function *f, int x) {
	SAY(0);
	say();
	return f(x + 1);
}

NOINLINE int middle(const char *how, function *f, int x) {
	struct table t = {x, f};
	SAY(1);
	if (!strcmp(how, "table"))
		return by_table(&t, x * 2) + x;
	if (!strcmp(how, "jump"))
		return by_jump(f, x * 2) + x;
	return by_register(f, x * 2) * 3 + x;
}

NOINLINE int outer(const char *how, function *f, int x) {
	SAY(2);
	return middle(how, f, x + 1) + 1;
}

int main(int argc, char **argv) {
	const char *where = argv[1];
	int local[16] = {0};
	function *f = 0;
	if (!strcmp(where, "closed")) {
		void *lib = dlopen(argv[3], RTLD_NOW);
		f = lib ? (function *)dlsym(lib, "leave") : 0;
		if (!f)
			return 3;
		dlclose(lib);
	} else if (!strcmp(where, "heap"))
		f = (function *)((char *)malloc(4000) + 64);
	else if (!strcmp(where, "stack"))
		f = (function *)local;
	else if (!strcmp(where, "data"))
		f = (function *)data;
	else if (!strcmp(where, "low"))
		f = (function *)0x18;
	else if (!strcmp(where, "kernel"))
		f = (function *)0xffffffff80000000;
	else if (!strcmp(where, "noncanonical"))
		f = (function *)0xdeadbeefdeadbeef;
	return outer(argv[2], f, argc);
}
