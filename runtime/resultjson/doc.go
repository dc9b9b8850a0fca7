// Package resultjson defines the JSON that the server and its clients exchange beside the results of package runtime,
// whose types are their JSON. To add a field to a result or an event, add it with a tag to the type of package runtime, and
// make generate: schemas, both directions of the JSON and the npm package's types follow.
package resultjson
