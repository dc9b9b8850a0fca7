package vm

import (
	"fmt"
	"strconv"

	"gaol/jail/kernel"
	"gaol/runtime/internal/sandbox"
)

// emulated is the factor of timeouts for starts in an emulated machine, and a string of QEMU's cache of emulated code in MiB.
const emulated, emulatedCache = 20, "96"

// Descriptors of QEMU: Cmd.ExtraFiles begins with the first one.
const (
	socketFD = 3 + iota
	kernelFD
	initramfsFD
	diskFD // and the next ones
)

// portName is the name of the serial port for the agent.
const portName = "gaol"

// arguments are those of QEMU.
func arguments(spec *sandbox.Spec, disks int, slow float64) ([]string, error) {
	line, err := kernelLine(slow)
	if err != nil {
		return nil, err
	}
	fd := func(n int) string { return "/dev/fd/" + strconv.Itoa(n) }
	list := []string{
		"-M", "microvm,rtc=on,isa-serial=on,pit=on,pic=on", "-accel", "tcg,tb-size=" + emulatedCache, "-cpu", "max",
		"-m", strconv.FormatInt(memory(spec)>>20, 10), "-smp", strconv.Itoa(processors(spec)),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", fd(kernelFD), "-initrd", fd(initramfsFD), "-append", line,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-device", "virtio-serial-device,max_ports=2", "-chardev", fmt.Sprintf("socket,id=agent,fd=%d", socketFD),
		"-device", "virtserialport,chardev=agent,name=" + portName,
		"-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-device,rng=random",
	}
	for i := range disks {
		list = append(list, "-add-fd", fmt.Sprintf("fd=%d,set=%d", diskFD+i, i),
			"-drive", fmt.Sprintf("if=none,id=disk%d,file=/dev/fdset/%d,file.locking=off,format=raw,readonly=on", i, i),
			"-device", fmt.Sprintf("virtio-blk-device,drive=disk%d,serial=%s", i, diskName(i)))
	}
	return list, nil
}

// diskName is the serial number of the nth disk.
func diskName(n int) string { return "image" + strconv.Itoa(n) }

// kernelLine is the kernel's command line. The kernel makes variables that it does not know those of the first process.
func kernelLine(slow float64) (string, error) {
	khz, err := tscFrequency()
	if err != nil {
		return "", err
	}
	const ticks = 250 // Debian's CONFIG_HZ, for loops per tick
	return fmt.Sprintf("console=ttyS0 quiet panic=-1 reboot=t random.trust_cpu=on mitigations=off "+
		"tsc=reliable tsc_early_khz=%d lpj=%d no_timer_check rdinit=%s PATH=/ %s=%g -- agent boot",
		khz, khz*1000/ticks, agentPath, kernel.SlowVariable, slow), nil
}
