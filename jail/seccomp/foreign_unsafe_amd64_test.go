package seccomp

import (
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callForeign calls getpid by int 0x80, the interface of 32-bit programs, which 64-bit
// programs can use too.
func callForeign() {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20
		0xcd, 0x80, //        int 0x80
		0xc3, //              ret
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	copy(page, code)
	entry := unsafe.Pointer(&page[0])
	closure := unsafe.Pointer(&entry) // a func value points to a pointer to code
	(*(*func())(unsafe.Pointer(&closure)))()
}

func TestOtherArchitectures(t *testing.T) {
	const x32 = 0x4000_0000
	tests := []struct {
		name string
		order
	}{
		{"int 0x80", order{Foreign: true}},
		{"x32", order{Calls: []call{{Nr: unix.SYS_GETPID | x32}}}},
		{"x32 with its own number", order{Calls: []call{{Nr: 520 | x32}}}}, // execve
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, plain := helper(t, test.order)
			test.Filter = filter(t)
			_, state := helper(t, test.order)
			refused := state.Sys().(syscall.WaitStatus).Signal() == unix.SIGSYS
			if test.Foreign && !plain.Success() { // some hypervisors do not pass the interrupt on
				t.Logf("without the filter: %v", plain)
				refused = !state.Success()
			} else if !plain.Success() {
				t.Errorf("without the filter: %v", plain)
			}
			if !refused {
				t.Errorf("with the filter: %v", state)
			}
		})
	}
}
