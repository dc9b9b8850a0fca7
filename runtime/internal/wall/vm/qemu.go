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

// socketFD is QEMU's descriptor of the socket: the first one of Cmd.ExtraFiles.
const socketFD = 3

// portName is the name of the serial port for the agent.
const portName = "gaol"

// arguments returns the arguments of QEMU, for a machine that has some disks and is slow by a factor.
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
	// The kernel passes variables that it does not know to the first process.
	line += fmt.Sprintf(" PATH=/ %s=%g -- agent boot", kernel.SlowVariable, slow)
	list := []string{
		"-M", "microvm,rtc=on,isa-serial=on,pit=on,pic=on",
		"-m", strconv.FormatInt(memory(spec)>>20, 10), "-smp", strconv.Itoa(processors(spec)),
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", kernelName, "-initrd", initramfsName, "-append", line,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-device", "virtio-serial-device,max_ports=2", "-chardev", fmt.Sprintf("socket,id=agent,fd=%d", socketFD),
		"-device", "virtserialport,chardev=agent,name=" + portName,
		"-object", "rng-builtin,id=random", "-device", "virtio-rng-device,rng=random",
	}
	list = append(list, accelerator...)
	for i := range disks {
		name := diskName(i)
		list = append(list,
			"-drive", fmt.Sprintf("if=none,id=%s,file=/%s,file.locking=off,format=raw,readonly=on", name, name),
			"-device", fmt.Sprintf("virtio-blk-device,drive=%s,serial=%s", name, name))
	}
	return list, nil
}

// emulatedClock describes the time stamp counter to the kernel, which cannot measure it on a busy host.
func emulatedClock() (string, error) {
	khz, err := tscFrequency()
	const ticks = 250 // Debian's CONFIG_HZ, for loops per tick
	return fmt.Sprintf("tsc=reliable tsc_early_khz=%d lpj=%d no_timer_check", khz, khz*1000/ticks), err
}
