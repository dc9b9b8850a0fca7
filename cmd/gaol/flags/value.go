package flags

import (
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// value implements pflag.Value with a parser. pflag adds the flag's name to errors.
type value[T any] struct {
	target *T
	kind   string // shown in help
	parse  func(string) (T, error)
	format func(T) string
}

func (v value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.target = parsed
	}
	return err
}

func (v value[T]) String() string { return v.format(*v.target) }

func (v value[T]) Type() string { return v.kind }

// Text returns a flag for text that is not empty. To the runtime, no text means the default, but --image="$IMAGE" of a
// script with a mistake means another image.
func Text(target *string) pflag.Value {
	return text(target, func(s string) (string, error) { return s, nil })
}

// Folder returns a flag for a folder of the host, whose path becomes absolute.
func Folder(target *string) pflag.Value { return text(target, filepath.Abs) }

func text(target *string, parse func(string) (string, error)) pflag.Value {
	return value[string]{target, "string", func(s string) (string, error) {
		if s == "" {
			return "", errors.New("it is empty")
		}
		return parse(s)
	}, func(s string) string { return s }}
}

// Size returns a flag for a number of bytes above zero, such as 256m.
func Size(target *int64) pflag.Value {
	return value[int64]{target, "SIZE", report.ParseSize, report.FormatSize}
}

// Count returns a flag for a whole number above zero.
func Count[T int | int64](target *T) pflag.Value {
	return value[T]{target, "N", func(s string) (T, error) {
		n, err := strconv.ParseUint(s, 10, 63) // int has 64 bits on amd64 and arm64
		if err != nil || n == 0 {
			return 0, errors.New("want a whole number above zero")
		}
		return T(n), nil
	}, func(n T) string { return strconv.FormatInt(int64(n), 10) }}
}

// number returns a flag for a number above zero, such as half a processor.
func number(target *float64) pflag.Value {
	return value[float64]{target, "N", func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		// Not "f <= 0", which is false for NaN.
		if err != nil || !(f > 0) || math.IsInf(f, 0) {
			return 0, errors.New("want a number above zero like 0.5 or 2")
		}
		return f, nil
	}, func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }}
}

// Duration returns a flag for a time limit. Zero disables the limit, as in timeout(1).
func Duration(target *time.Duration) pflag.Value {
	return value[time.Duration]{target, "TIME", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, errors.New("want a time like 500ms, 5s or 2m")
		}
		return d, nil
	}, func(d time.Duration) string {
		if d == 0 {
			return "0" // pflag does not show this as a default
		}
		return d.String()
	}}
}

// Choice is a flag that takes one of a few names.
type Choice[T comparable] map[string]T

// The choices of several commands.
var (
	Launchers = Choice[runtime.Launcher]{"exec": runtime.LauncherExec, "zygote": runtime.LauncherZygote}
	Formats   = Choice[runtime.ModuleFormat]{"auto": runtime.FormatAuto, "esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS}
)

// Add defines the flag, whose default is the value of target. A shell completes the names.
func (c Choice[T]) Add(cmd *cobra.Command, target *T, flag, usage string) {
	names := slices.Sorted(maps.Keys(c))
	parse := func(s string) (T, error) {
		v, ok := c[s]
		if !ok {
			return v, errors.New("want " + strings.Join(names, " or "))
		}
		return v, nil
	}
	format := func(v T) string {
		for _, name := range names {
			if c[name] == v {
				return name
			}
		}
		return ""
	}
	cmd.Flags().Var(value[T]{target, "NAME", parse, format}, flag, usage)
	Complete(cmd, flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}
