package doctor

import (
	"errors"
	"fmt"
	"strings"

	"gaol/jail/landlock"
	"gaol/jail/landlock/audit"
)

func lookLandlock(*examination) finding {
	abi, err := landlock.ABI()
	if none, ok := errors.AsType[*landlock.UnavailableError](err); ok {
		return degraded("none: "+none.Err.Error(), none.Cure)
	}
	return landlockOf(abi)
}

// landlockABI is the last ABI that holds something. What the next one tells is the
// check of audit.
const landlockABI = 6

// landlockOf says what an ABI costs: each that is missing, and what it would add.
func landlockOf(abi int) finding {
	detail := fmt.Sprintf("ABI %d", abi)
	if abi >= landlockABI {
		return ok(detail)
	}
	versions := landlock.Versions()[:landlockABI]
	var lacking []string
	for _, v := range versions[abi:] {
		lacking = append(lacking, fmt.Sprintf("%s (ABI %d)", v.Adds, v.ABI))
	}
	return degraded(detail+" without "+strings.Join(lacking, ", "),
		"boot a kernel of version "+versions[landlockABI-1].Linux+" or later")
}

func lookAudit(*examination) finding { return auditOf(audit.Available()) }

// auditOf is about a comfort, which most machines have switched off: without it, too,
// nothing is amiss.
func auditOf(err error) finding {
	if err == nil {
		return ok("on: what Landlock denies can be told")
	}
	return ok("what Landlock denies is not told: " + strings.TrimPrefix(err.Error(), "audit: "))
}
