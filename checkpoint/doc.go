// Package checkpoint is the plain data of a terminal's state and its encoding.
//
// It owns [State], which the terminal fills and is made from, and the format of the
// bytes that a store keeps of it. It knows no terminal, does no I/O and has no
// clock; it imports only the standard library's encodings and checksum.
//
// # Layout
//
// state.go holds the data, encode.go the drawing of the format and the encoder,
// decode.go the decoder and its errors, delta.go puts States together that were made
// without each other's rows.
//
// # What a decoder is told
//
// [Decode] tells apart [ErrNotCheckpoint] (not ours), [ErrNewerVersion] (a later
// version of the format), [ErrTruncated] (a torn end) and [ErrDamaged] (anything
// else that is wrong). A blob that decodes is not yet a possible terminal: that is
// the terminal's to check.
//
// # Limits
//
// An encoding is at most 2^32-1 bytes. Decode allocates at most about 40 bytes for
// each byte of its input. It does not compress: the store does, and ten thousand
// rows of 80 columns are about 0.9 MB before that.
package checkpoint
