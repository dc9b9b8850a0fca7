package bench

import "maps"

// ID names a figure for programs: it stays when the words for people change.
type ID string

// The figures.
const (
	runMedianID       ID = "run-p50"
	runTailID         ID = "run-p99"
	clients1ID        ID = "throughput-1"
	clients2ID        ID = "throughput-2"
	clients4ID        ID = "throughput-4"
	lifecycleID       ID = "create-run-close"
	pooledID          ID = "pool-get-run"
	idleMemoryID      ID = "idle-memory"
	programMemoryID   ID = "program-memory"
	computeID         ID = "compute"
	jsonID            ID = "json"
	garbageID         ID = "garbage"
	filesID           ID = "files"
	callbackID        ID = "stream-callback"
	eventsID          ID = "stream-events"
	strictID          ID = "run-strict"
	restrictedFilesID ID = "files-restricted"
	readSmallID       ID = "host-read-1k"
	writeSmallID      ID = "host-write-1k"
	readLargeID       ID = "host-read-100m"
	writeLargeID      ID = "host-write-100m"
	snapshotID        ID = "create-snapshot"
	overlayFilesID    ID = "files-snapshot"
	projectID         ID = "project-snapshot"
	callID            ID = "call"
	callHTTPID        ID = "call-http"
	callsID           ID = "calls"
	evaluateID        ID = "evaluate"
	normalizeID       ID = "normalize"
	fewLiveID         ID = "live-few"
	manyLiveID        ID = "live-many"
	createID          ID = "create"
	firstRunID        ID = "first-run"
	closeID           ID = "close"
	overtimeID        ID = "overtime"
)

// Bar is what the zygote's side of a figure is held against, or each launcher's.
type Bar struct {
	Limit float64 `json:"bar"`  // the worst that is good enough
	Goal  float64 `json:"goal"` // what to go past it to

	AtLeast bool `json:"atLeast,omitempty"` // more is better: Limit is the least
	OfValue bool `json:"ofValue,omitempty"` // it's about the value itself, not about its ratio
	Both    bool `json:"both,omitempty"`    // it's for LauncherExec as well: how Node starts is not what counts
}

// bars are gaol's own, by figure. One without is there to look at. overlayFilesID has
// none as it is overlayfs's own price for a call: projectID is what work costs there.
var bars = map[ID]Bar{
	runMedianID:       {Limit: 0.22, Goal: 0.12},
	runTailID:         {Limit: 0.5, Goal: 0.25},
	clients4ID:        {Limit: 4, Goal: 8, AtLeast: true},
	lifecycleID:       {Limit: 1, Goal: 0.5},
	pooledID:          {Limit: 0.3, Goal: 0.15},
	idleMemoryID:      {Limit: 1, Goal: 0.3, OfValue: true},
	programMemoryID:   {Limit: 10, Goal: 6, OfValue: true},
	computeID:         {Limit: 1.1, Goal: 1.02},
	jsonID:            {Limit: 1.1, Goal: 1.02},
	garbageID:         {Limit: 1.1, Goal: 1.02},
	filesID:           {Limit: 1.1, Goal: 1.02},
	callbackID:        {Limit: 0.7, Goal: 1, AtLeast: true},
	eventsID:          {Limit: 0.7, Goal: 1, AtLeast: true},
	strictID:          {Limit: 1.05, Goal: 1},
	restrictedFilesID: {Limit: 1.1, Goal: 1.02},
	snapshotID:        {Limit: 1.5, Goal: 1},
	projectID:         {Limit: 1.15, Goal: 1.02, Both: true},
	callID:            {Limit: 40, Goal: 20, OfValue: true},
	callHTTPID:        {Limit: 5, Goal: 10, AtLeast: true},
	callsID:           {Limit: 50_000, Goal: 100_000, AtLeast: true, OfValue: true},
	evaluateID:        {Limit: 1.2, Goal: 1.05},
	normalizeID:       {Limit: 5, Goal: 2, OfValue: true},
	fewLiveID:         {Limit: 1.3, Goal: 1},
	manyLiveID:        {Limit: 1.3, Goal: 1},
}

// Values are one figure's, by side.
type Values map[Side]float64

// Figure is one thing that was measured.
type Figure struct {
	ID     ID     `json:"id"`
	Name   string `json:"name"`
	Unit   string `json:"unit"` // of Values
	Values Values `json:"values"`

	// Ratio is each jailed side's value through that which Against names, in
	// the same run of the benchmark; nil where there's nothing to compare with.
	Ratio   Values `json:"ratio,omitempty"`
	Against string `json:"against,omitempty"`

	*Bar       // nil where there's none
	Met  *bool `json:"met,omitempty"` // nil where there's no bar, or no side to hold against it
}

// againstBare makes a figure of values that are told as multiples of bare node's.
func againstBare(id ID, name, unit string, v Values) Figure {
	f := Figure{ID: id, Name: name, Unit: unit, Values: v, Against: "bare node", Ratio: Values{}}
	for side, value := range v {
		if side != Bare {
			f.Ratio[side] = value / v[Bare]
		}
	}
	return f.judged()
}

// againstOwn makes a figure of values that are told as multiples of the same
// side's own at another time.
func againstOwn(id ID, name, unit string, v, base Values, against string) Figure {
	f := Figure{ID: id, Name: name, Unit: unit, Values: v, Against: against, Ratio: maps.Clone(v)}
	for side := range v {
		f.Ratio[side] /= base[side]
	}
	return f.judged()
}

// timesAsFast makes a figure of times whose ratio is how many of them go into bare node's
// for something else.
func timesAsFast(id ID, name, unit string, v Values, against string) Figure {
	f := againstBare(id, name, unit, v)
	for side := range f.Ratio {
		f.Ratio[side] = 1 / f.Ratio[side]
	}
	f.Against = against
	return f.judged()
}

// alone makes a figure that is compared with nothing.
func alone(id ID, name, unit string, v Values) Figure {
	return Figure{ID: id, Name: name, Unit: unit, Values: v}.judged()
}

// judged holds the figure against its bar.
func (f Figure) judged() Figure {
	bar, ok := bars[f.ID]
	if !ok {
		return f
	}
	f.Bar, f.Met = &bar, nil
	measured := f.Ratio
	if bar.OfValue {
		measured = f.Values
	}
	for _, side := range bar.sides() {
		if got, ok := measured[side]; ok {
			met := bar.met(got) && (f.Met == nil || *f.Met)
			f.Met = &met
		}
	}
	return f
}

// sides are those that are held against the bar.
func (b Bar) sides() []Side {
	if b.Both {
		return []Side{Exec, Zygote}
	}
	return []Side{Zygote}
}

// met is false for a NaN too.
func (b Bar) met(got float64) bool {
	if b.AtLeast {
		return got >= b.Limit
	}
	return got <= b.Limit
}
