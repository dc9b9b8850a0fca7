package procfs

import (
	"slices"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	for table, rows := range map[string][]Row{"Shown": Shown, "Settings": Settings, "OfProcess": OfProcess, "OfNetwork": OfNetwork} {
		for _, r := range rows {
			if r.Name == "" || len(r.Reason) < 4 {
				t.Errorf("%s: %+v lacks a name or a reason", table, r)
			}
			if strings.HasPrefix(r.Name, "/") || strings.Contains(r.Name, "/") && table != "Settings" {
				t.Errorf("%s: %s is no name in the folder", table, r.Name)
			}
			if r.From != Kernel && (table == "OfProcess" || table == "OfNetwork") || r.Traced && table != "OfProcess" {
				t.Errorf("%s: %+v", table, r)
			}
		}
		names := func(a, b Row) int { return strings.Compare(a.Name, b.Name) }
		if !slices.IsSortedFunc(rows, names) || len(slices.CompactFunc(slices.Clone(rows), func(a, b Row) bool { return a.Name == b.Name })) < len(rows) {
			t.Errorf("%s is not sorted, or lists an entry twice", table)
		}
	}
}
