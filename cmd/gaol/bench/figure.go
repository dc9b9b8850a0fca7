package bench

// ID names a figure for programs. It stays when Figure.Name changes.
type ID string

// The figures.
const (
	runMedianID     ID = "run-p50"
	runTailID       ID = "run-p99"
	clients1ID      ID = "throughput-1"
	clients2ID      ID = "throughput-2"
	clients4ID      ID = "throughput-4"
	lifecycleID     ID = "create-run-close"
	pooledID        ID = "pool-get-run"
	idleMemoryID    ID = "idle-memory"
	programMemoryID ID = "program-memory"
	computeID       ID = "compute"
	jsonID          ID = "json"
	garbageID       ID = "garbage"
	filesID         ID = "files"
	callbackID      ID = "stream-callback"
	strictID        ID = "run-strict"
	readLargeID     ID = "host-read-100m"
	writeLargeID    ID = "host-write-100m"
	snapshotID      ID = "create-snapshot"
	overlayFilesID  ID = "files-snapshot"
	projectID       ID = "project-snapshot"
	callID          ID = "call"
	callHTTPID      ID = "call-http"
	callsID         ID = "calls"
	evaluateID      ID = "evaluate"
	normalizeID     ID = "normalize"
	manyLiveID      ID = "live-many"
	createID        ID = "create"
	overtimeID      ID = "overtime"
)

// Bar is the limit for the zygote's side of a figure, or for both launchers.
type Bar struct {
	Limit float64 `json:"bar"`  // the worst acceptable result
	Goal  float64 `json:"goal"` // a better result to aim for

	AtLeast bool `json:"atLeast,omitempty"` // more is better: Limit is the minimum
	OfValue bool `json:"ofValue,omitempty"` // limits the value, not its ratio
	Both    bool `json:"both,omitempty"`    // also for LauncherExec: the start of Node does not matter
}

// bars has gaol's own bars. Other figures are informative. overlayFilesID has none because
// it is overlayfs's own cost of a call: projectID is what work on an overlay costs.
var bars = map[ID]Bar{
	runMedianID:     {Limit: 0.22, Goal: 0.12},
	runTailID:       {Limit: 0.5, Goal: 0.25},
	clients4ID:      {Limit: 4, Goal: 8, AtLeast: true},
	lifecycleID:     {Limit: 1, Goal: 0.5},
	pooledID:        {Limit: 0.3, Goal: 0.15},
	idleMemoryID:    {Limit: 1, Goal: 0.3, OfValue: true},
	programMemoryID: {Limit: 10, Goal: 6, OfValue: true},
	computeID:       {Limit: 1.1, Goal: 1.02},
	jsonID:          {Limit: 1.1, Goal: 1.02},
	garbageID:       {Limit: 1.1, Goal: 1.02},
	filesID:         {Limit: 1.1, Goal: 1.02},
	callbackID:      {Limit: 0.7, Goal: 1, AtLeast: true},
	strictID:        {Limit: 1.05, Goal: 1},
	snapshotID:      {Limit: 1.5, Goal: 1},
	projectID:       {Limit: 1.15, Goal: 1.02, Both: true},
	callID:          {Limit: 40, Goal: 20, OfValue: true},
	callHTTPID:      {Limit: 5, Goal: 10, AtLeast: true},
	callsID:         {Limit: 50_000, Goal: 100_000, AtLeast: true, OfValue: true},
	evaluateID:      {Limit: 1.2, Goal: 1.05},
	normalizeID:     {Limit: 5, Goal: 2, OfValue: true},
	manyLiveID:      {Limit: 1.3, Goal: 1},
}

// Values are the values of one figure, by side.
type Values map[Side]float64

// Figure is one thing that was measured.
type Figure struct {
	ID     ID     `json:"id"`
	Name   string `json:"name"`
	Unit   string `json:"unit"` // of Values
	Values Values `json:"values"`

	// Ratio is the value of each jailed side divided by the value that Against
	// names, of the same benchmark. Nil: the figure is compared with nothing.
	Ratio   Values `json:"ratio,omitempty"`
	Against string `json:"against,omitempty"`

	*Bar       // nil: none
	Met  *bool `json:"met,omitempty"` // nil: no bar, or no value of the sides that it limits
}

// newFigure returns a figure with a ratio for each jailed side, or without if ratio is nil.
func newFigure(id ID, name, unit string, v Values, against string, ratio func(Side) float64) Figure {
	f := Figure{ID: id, Name: name, Unit: unit, Values: v, Against: against}
	if ratio != nil {
		f.Ratio = Values{}
		for side := range v {
			if side != Bare {
				f.Ratio[side] = ratio(side)
			}
		}
	}
	return f.withBar()
}

// againstBare returns a figure with ratios to bare node.
func againstBare(id ID, name, unit string, v Values) Figure {
	return newFigure(id, name, unit, v, "bare node", func(s Side) float64 { return v[s] / v[Bare] })
}

// againstOwn returns a figure with ratios to base, another measurement of the same side.
func againstOwn(id ID, name, unit string, v, base Values, against string) Figure {
	return newFigure(id, name, unit, v, against, func(s Side) float64 { return v[s] / base[s] })
}

// timesAsFast returns a figure whose ratio is bare node's time for something else divided
// by the side's time.
func timesAsFast(id ID, name, unit string, v Values, against string) Figure {
	return newFigure(id, name, unit, v, against, func(s Side) float64 { return v[Bare] / v[s] })
}

// alone returns a figure without ratios.
func alone(id ID, name, unit string, v Values) Figure {
	return newFigure(id, name, unit, v, "", nil)
}

// withBar adds the figure's bar, and whether it is met.
func (f Figure) withBar() Figure {
	bar, ok := bars[f.ID]
	if !ok {
		return f
	}
	f.Bar, f.Met = &bar, nil
	measured := f.Ratio
	if bar.OfValue {
		measured = f.Values
	}
	for side, got := range measured {
		if side == Zygote || bar.Both && side == Exec {
			met := bar.met(got) && (f.Met == nil || *f.Met)
			f.Met = &met
		}
	}
	return f
}

// met reports whether got meets the bar. NaN does not.
func (b Bar) met(got float64) bool {
	if b.AtLeast {
		return got >= b.Limit
	}
	return got <= b.Limit
}
