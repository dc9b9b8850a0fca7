package vm

import (
	"fmt"
	"strconv"

	"gaol/jail/kernel"
	"gaol/runtime/internal/sandbox"
)

// slowEmulated is the factor of timeouts for starts in an emulated machine.
const slowEmulated = 20

// emulatedCache bounds QEMU's cache of emulated code, in MiB.
const emulatedCache = "96"

// Descriptors of QEMU: Cmd.ExtraFiles begins with the first one.
const (
	socketFD = 3 + iota
	kernelFD
	initramfsFD
	diskFD // and the next ones
)

// portName is the name of the serial port for the agent.
const portName = "gaol"

// arguments are those of QEMU, for a machine that has some disks and is slow by a factor.
func arguments(spec *sandbox.Spec, disks int, emulated bool, slow float64) ([]string, error) {
	line := "console=ttyS0 quiet panic=-1 reboot=t random.trust_cpu=on rdinit=" + agentPath
	accelerator := []string{"-accel", "kvm", "-cpu", "host"}
	if emulated {
		clock, err := emulatedClock()
		if err != nil {
			return nil, err
		}
		line += " mitigations=off " + clock
		accelerator = []string{"-accel", "tcg,tb-size=" + emulatedCache, "-cpu", "max"}
	}
	// Variables that the kernel does not know become those of the first process.
	line += fmt.Sprintf(" PATH=/ %s=%g -- agent boot", kernel.SlowVariable, slow)
	fd := func(n int) string { return "/dev/fd/" + strconv.Itoa(n) }
	list := []string{
		"-M", "microvm,rtc=on,isa-serial=on,pit=on,pic=on",
		"-m", strconv.FormatInt(memory(spec)>>20, 10), "-smp", strconv.Itoa(processors(spec)),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", fd(kernelFD), "-initrd", fd(initramfsFD), "-append", line,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-device", "virtio-serial-device,max_ports=2", "-chardev", fmt.Sprintf("socket,id=agent,fd=%d", socketFD),
		"-device", "virtserialport,chardev=agent,name=" + portName,
		"-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-device,rng=random",
	}
	list = append(list, accelerator...)
	for i := range disks {
		list = append(list, "-add-fd", fmt.Sprintf("fd=%d,set=%d", diskFD+i, i),
			"-drive", fmt.Sprintf("if=none,id=disk%d,file=/dev/fdset/%d,file.locking=off,format=raw,readonly=on", i, i),
			"-device", fmt.Sprintf("virtio-blk-device,drive=disk%d,serial=%s", i, diskName(i)))
	}
	return list, nil
}

// diskName is the serial number of the nth disk.
func diskName(n int) string { return "image" + strconv.Itoa(n) }

// emulatedClock describes the time stamp counter to the kernel, which cannot measure it on a busy host.
func emulatedClock() (string, error) {
	khz, err := tscFrequency()
	const ticks = 250 // Debian's CONFIG_HZ, for loops per tick
	return fmt.Sprintf("tsc=reliable tsc_early_khz=%d lpj=%d no_timer_check", khz, khz*1000/ticks), err
}
