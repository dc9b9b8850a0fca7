package flags

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// value implements pflag.Value with a parser. pflag adds the flag's name to errors.
type value[T any] struct {
	target *T
	kind   string // shown in help
	parse  func(string) (T, error)
	format func(T) string // nil: help shows no default
}

func (v value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.target = parsed
	}
	return err
}

func (v value[T]) String() string {
	if v.format == nil {
		return ""
	}
	return v.format(*v.target)
}

func (v value[T]) Type() string { return v.kind }

// List returns a flag that parses each of its uses into elements of target.
func List[T any](target *[]T, kind string, parse func(string) ([]T, error)) pflag.Value {
	return value[[]T]{target, kind, func(s string) ([]T, error) {
		more, err := parse(s)
		return append(*target, more...), err
	}, nil}
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

// Choice returns a flag that takes one of a few names. It starts with the name initial.
func Choice[T any](target *T, kind, initial, wrong string, values map[string]T) pflag.Value {
	name := initial
	return value[T]{target, kind, func(s string) (T, error) {
		v, ok := values[s]
		if !ok {
			return v, errors.New(wrong)
		}
		name = s
		return v, nil
	}, func(T) string { return name }}
}

// Format returns a flag for the format of a module.
func Format(target *runtime.ModuleFormat) pflag.Value {
	return Choice(target, "FORMAT", "auto", "want auto, esm or cjs", map[string]runtime.ModuleFormat{
		"auto": runtime.FormatAuto, "esm": runtime.FormatESM, "cjs": runtime.FormatCommonJS,
	})
}

// Launcher returns a flag for one launcher.
func Launcher(target *runtime.Launcher) pflag.Value {
	return Choice(target, "NAME", target.String(), "want exec or zygote", map[string]runtime.Launcher{
		"exec": runtime.LauncherExec, "zygote": runtime.LauncherZygote,
	})
}

// entries returns a flag that adds one entry to a map with each use.
func entries[T any](target *map[string]T, kind string, parse func(string) (key string, v T, err error)) pflag.Value {
	return value[map[string]T]{target, kind, func(s string) (map[string]T, error) {
		key, v, err := parse(s)
		if err != nil {
			return nil, err
		}
		if *target == nil {
			*target = map[string]T{}
		}
		(*target)[key] = v
		return *target, nil
	}, nil}
}

// variables returns a flag for environment variables. The last one of a name counts.
func variables(target *map[string]string) pflag.Value {
	return entries(target, "K=V", func(s string) (name, text string, err error) {
		name, text, found := strings.Cut(s, "=")
		if !found || name == "" {
			// Unlike docker, gaol does not copy a variable from its
			// environment: the guest sees nothing of the host that is not written out.
			err = errors.New("want NAME=VALUE")
		}
		return name, text, err
	})
}
