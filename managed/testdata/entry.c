// A program with a _start of its own that no table describes, as musl's. It
// crashes two calls below.
#if defined(__x86_64__)
__asm__(".text\n.global _start\n_start:\n"
	"xor %rbp, %rbp\n mov %rsp, %rdi\n lea _start(%rip), %rsi\n and $-16, %rsp\n call begin\n"
	// What follows belongs to other functions.
	".global stray\nstray:\n call begin\n");
#else
__asm__(".text\n.global _start\n_start:\n"
	"mov x29, #0\n mov x30, #0\n mov x0, sp\n adr x1, _start\n and sp, x0, #-16\n bl begin\n bl begin\n"
	".global stray\nstray:\n bl begin\n");
#endif

__attribute__((noinline)) int crash(volatile int *p) { return *p + 1; }

void begin(long *args) {
	volatile int n = crash(0);
	for (;;)
		n++;
}
