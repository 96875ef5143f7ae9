// Package codec encrypts the payloads that Temporal keeps: inputs, results, memos, heartbeats and the messages of
// failures. The keys are in a file. Without the file payloads are plain.
//
// The codec works below Temporal's SDK, on the requests and answers of the connection. The SDK does not pass memos
// and heartbeats in descriptions, or histories, through a data converter. The SDK would also write a
// memo in plain text, without an error, when the converter fails (SDK internal_workflow_client.go).
package codec
