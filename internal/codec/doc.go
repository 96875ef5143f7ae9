// Package codec encrypts the payloads that Temporal stores: inputs, results, memos, heartbeats and the messages of
// failures. The keys are in a file. Without the file the payloads are plain.
//
// The codec works below Temporal's SDK, on the requests and responses of the gRPC connection. A data converter of the
// SDK would not suffice for two reasons. The SDK does not decode the memos and heartbeats in descriptions, or the
// payloads in histories. And when a data converter fails, the SDK writes a memo in plain text without an error (SDK
// internal_workflow_client.go).
package codec
