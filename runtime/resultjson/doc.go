// Package resultjson defines the JSON forms of results: the objects that gaol run --json and
// gaol eval --json print, and that the server and its clients exchange.
//
// A field of an event has four places: the SDK's type, the type and its New function here, and the inverse for
// package client. TestEventsBack fails if the last one lacks the field. The npm package's types are generated.
package resultjson
