package npm

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// driver is a Node program that measures a library. driver.mjs describes its measurements.
type driver struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

// nodeVar is the variable with the path of the Node that runs drivers. By default that on PATH does.
const nodeVar = "GAOL_NODE"

// startDriver starts driver.mjs, which ends with the benchmark.
func startDriver(b *testing.B, kind, where string) *driver {
	b.Helper()
	return startScript(b, "driver.mjs", kind, where)
}

// startScript starts a driver that ends with the benchmark.
func startScript(b *testing.B, args ...string) *driver {
	b.Helper()
	if _, err := os.Stat("../../cmd/npm/dist/index.mjs"); err != nil {
		b.Skipf("the npm package is not built: %v", err)
	}
	c := exec.Command(cmp.Or(os.Getenv(nodeVar), "node"), args...)
	c.Env = append(os.Environ(), "TMPDIR="+b.TempDir()) // secure-exec leaves files there
	var messages bytes.Buffer
	c.Stderr = &messages
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	d := &driver{in, bufio.NewScanner(out)}
	b.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := c.Wait(); err != nil {
			b.Errorf("%q: %v: %s", args, err, messages.String())
		}
	})
	if _, err := d.read(); err != nil {
		b.Fatal(err)
	}
	return d
}

// measure makes a measurement.
func (d *driver) measure(what string) (time.Duration, error) {
	if _, err := fmt.Fprintln(d.in, what); err != nil {
		return 0, err
	}
	return d.read()
}

// read reads a number of milliseconds.
func (d *driver) read() (time.Duration, error) {
	if !d.out.Scan() {
		return 0, fmt.Errorf("the driver has ended: %w", cmp.Or(d.out.Err(), io.ErrUnexpectedEOF))
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(d.out.Text()), 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}
