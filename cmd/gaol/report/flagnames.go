package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gaol/runtime"
)

// limitFlags maps fields of runtime.Limits and EvaluateOptions to flags.
var limitFlags = map[string]string{
	"Memory": "memory", "CPUs": "cpus", "CPUTime": "cpu-time", "Pids": "pids", "Files": "open-files", "Disk": "disk", "Output": "max-output",
	"Heap": "heap", "MaxOutput": "max-output", "MaxLogs": "max-logs", "MaxLogLength": "max-log-length",
}

// byteLimits are the limits that are numbers of bytes.
var byteLimits = []string{"Memory", "Disk", "Output", "Heap", "MaxOutput"}

// optionFlags maps fields of runtime.Options and its relatives to flags.
var optionFlags = map[string]string{
	"AuditDenials": "--audit-denials", "Cwd": "--cwd", "Env": "--env", "Files": "--file", "Format": "--format", "Globals": "--globals", "HostPorts": "--host-port", "Hostname": "--hostname", "Isolation": "--isolation", "OCI": "--isolation", "Proxy": "--proxy",
	"Launcher": "--launcher", "Mounts": "--mount", "Name": "FILE", "NodeModules": "--node-modules", "Permissions": "--permissions",
	"Snapshot": "--snapshot", "Store": "--store",
}

// withFlagNames returns err's text with the name of the first option or limit in it
// replaced by the flag that sets it.
func withFlagNames(err error) string {
	text := err.Error()
	if o, ok := errors.AsType[*runtime.OptionError](err); ok && optionFlags[o.Option] != "" {
		text = strings.Replace(text, o.Error(), optionFlags[o.Option]+": "+o.Err.Error(), 1)
	}
	if l, ok := errors.AsType[*runtime.LimitError](err); ok && limitFlags[l.Limit] != "" {
		problem := "too little"
		if l.Value > l.Most {
			problem = "too much"
		}
		text = strings.Replace(text, l.Error(), fmt.Sprintf("--%s %s is %s", limitFlags[l.Limit], limitText(l, l.Value), problem), 1)
	}
	if l, ok := errors.AsType[*runtime.HostLimitError](err); ok && l.Most >= l.Least { // else no value of the flag helps
		text = strings.Replace(text, "limit "+l.Limit+":", "--"+limitFlags[l.Limit]+":", 1)
	}
	return text
}

func limitAdvice(l *runtime.LimitError) string {
	bound, which := l.Least, "and more"
	if l.Value > l.Most {
		bound, which = l.Most, "at most"
	}
	return fmt.Sprintf("--%s takes %s %s", limitFlags[l.Limit], limitText(l, bound), which)
}

// hostLimitAdvice is about limits of the gaol process itself.
func hostLimitAdvice(l *runtime.HostLimitError) string {
	if l.Most < l.Least {
		return ""
	}
	return fmt.Sprintf("--%s takes %d at most", limitFlags[l.Limit], l.Most)
}

// limitText prints a limit as its flag accepts it.
func limitText(l *runtime.LimitError, value float64) string {
	if slices.Contains(byteLimits, l.Limit) {
		return FormatSize(int64(value))
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
