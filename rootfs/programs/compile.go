package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"gaol/rootfs/sharedlib"
)

// The compiler's flags. There are no symbols, and the source comes from standard input: the
// result must not depend on the folder in which it is compiled.
var (
	commonFlags = []string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-x", "c", "-"}
	enterFlags  = []string{"-static"}
	zygoteFlags = []string{"-shared", "-fPIC"}
)

// compile compiles C source to the file out.
func (m *Maker) compile(ctx context.Context, source, out string, flags []string) error {
	cmd := exec.CommandContext(ctx, cmp.Or(m.Compiler, "cc"), slices.Concat(commonFlags, []string{"-o", out}, flags)...)
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("cc: %w: %s", err, firstError(string(text)))
	}
	return nil
}

// compileStatic compiles a program, which must be static whatever the compiler makes of the flags.
func (m *Maker) compileStatic(ctx context.Context, source, out string, flags []string) error {
	err := m.compile(ctx, source, out, flags)
	if err == nil && !sharedlib.IsStatic(out) {
		err = errors.New("cc: the program is not static")
	}
	return err
}

// firstError returns the first error line of a compiler's output.
func firstError(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "error:") })
	return lines[max(at, 0)]
}
