package kvm

import (
	"encoding/binary"
	"errors"
	"os"
	goruntime "runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of ioctl(2), see the kernel's Documentation/virt/kvm/api.rst.
const (
	createVM     = 0xAE01
	mmapSize     = 0xAE04
	createVCPU   = 0xAE41
	setMemory    = 0x4020AE46
	runVCPU      = 0xAE80
	getRegisters = 0x8090AE81
	setRegisters = 0x4090AE82
	getSpecial   = 0x8138AE83
	setSpecial   = 0x4138AE84
)

const exitHalted = 5 // KVM_EXIT_HLT

// answer is the guest's result: the number of bits in 0xfff.
const answer = 12

// Addresses of the guest's memory: three levels of page tables, and the code.
const (
	pml4, pdpt, pd, code = 0, 0x1000, 0x2000, 0x3000
	memorySize           = 0x4000
)

// registers are struct kvm_regs: rax, rbx, ..., r15, rip, rflags.
type registers [18]uint64

// segment is struct kvm_segment, and special struct kvm_sregs.
type segment struct {
	base                                         uint64
	limit                                        uint32
	selector                                     uint16
	kind, present, dpl, db, s, l, g, avl, unused uint8
	_                                            uint8
}

type special struct {
	cs, ds, es, fs, gs, ss, tr, ldt segment
	tables                          [4]uint64
	cr0, cr2, cr3, cr4, cr8         uint64
	efer, apic                      uint64
	_                               [4]uint64
}

// memoryRegion is struct kvm_userspace_memory_region.
type memoryRegion struct {
	slot, flags         uint32
	guest, size, memory uint64
}

func ioctl(fd int, request, argument uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, argument)
	if errno != 0 {
		return 0, os.NewSyscallError("ioctl", errno)
	}
	return int(n), nil
}

// run runs a guest.
func run() error {
	kvm, err := os.OpenFile(Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer kvm.Close()
	vm, err := ioctl(int(kvm.Fd()), createVM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(vm)
	memory, err := unix.Mmap(-1, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	fill(memory)
	region := memoryRegion{size: memorySize, memory: uint64(uintptr(unsafe.Pointer(&memory[0])))}
	if _, err := ioctl(vm, setMemory, uintptr(unsafe.Pointer(&region))); err != nil {
		return err
	}
	cpu, err := ioctl(vm, createVCPU, 0)
	if err != nil {
		return err
	}
	defer unix.Close(cpu)
	size, err := ioctl(int(kvm.Fd()), mmapSize, 0)
	if err != nil {
		return err
	}
	state, err := unix.Mmap(cpu, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	defer func() { _ = unix.Munmap(state) }()
	if err := setMode(cpu); err != nil {
		return err
	}
	return execute(cpu, state)
}

// fill writes the page tables and the code.
func fill(memory []byte) {
	const present, writable, large = 1, 2, 1 << 7
	for at, entry := range map[int]uint64{pml4: pdpt | present | writable, pdpt: pd | present | writable, pd: present | writable | large} {
		binary.LittleEndian.PutUint64(memory[at:], entry)
	}
	copy(memory[code:], []byte{
		0xB9, 0xFF, 0x0F, 0, 0, // mov $0xfff, %ecx
		0xF3, 0x0F, 0xB8, 0xC1, // popcnt %ecx, %eax
		0xF4, // hlt
	})
}

// setMode sets the registers to 64-bit mode.
func setMode(cpu int) error {
	var s special
	if _, err := ioctl(cpu, getSpecial, uintptr(unsafe.Pointer(&s))); err != nil {
		return err
	}
	s.cr3, s.cr4, s.cr0, s.efer = pml4, 1<<5, 1<<31|1<<4|1, 1<<10|1<<8 // PAE; PG, ET, PE; LMA, LME
	s.cs = segment{limit: 0xFFFFFFFF, selector: 8, kind: 11, present: 1, s: 1, l: 1, g: 1}
	data := segment{limit: 0xFFFFFFFF, selector: 16, kind: 3, present: 1, db: 1, s: 1, g: 1}
	s.ds, s.es, s.fs, s.gs, s.ss = data, data, data, data, data
	if _, err := ioctl(cpu, setSpecial, uintptr(unsafe.Pointer(&s))); err != nil {
		return err
	}
	var r registers
	r[16], r[17] = code, 2 // rip, rflags
	_, err := ioctl(cpu, setRegisters, uintptr(unsafe.Pointer(&r)))
	return err
}

// execute runs the guest until it halts, or for the timeout: then signals interrupt the system call. It returns once that has ended.
func execute(cpu int, state []byte) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var hung atomic.Bool
	ended, thread, began := make(chan struct{}), unix.Gettid(), time.Now()
	defer close(ended)
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(timeout):
				hung.Store(true)
				_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG) // Go's own signal for goroutines that run for long; the thread may have ended
			}
		}
	}()
	for {
		_, err := ioctl(cpu, runVCPU, 0)
		switch {
		case hung.Load() || time.Since(began) > timeout:
			return errHung
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case err == nil:
			const reason = 8 // offset of exit_reason in struct kvm_run
			var r registers
			if _, err := ioctl(cpu, getRegisters, uintptr(unsafe.Pointer(&r))); err != nil {
				return err
			}
			if binary.LittleEndian.Uint32(state[reason:]) != exitHalted || r[0] != answer {
				return errResult
			}
			return nil
		}
	}
}
