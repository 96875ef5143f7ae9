// Package codec encrypts the payloads that Temporal stores: inputs, results, memos, heartbeats and the messages of
// failures. The keys are in a file. Without a key file the payloads are not encrypted.
//
// The codec works below Temporal's SDK, on the requests and responses of the gRPC connection. A data converter of the
// SDK would not suffice, for two reasons. First, the SDK does not use the data converter for the memos and heartbeats
// in descriptions of workflows, or for the payloads in histories. Second, if a data converter fails, the SDK writes a
// memo in plain text without an error (SDK internal_workflow_client.go).
package codec
