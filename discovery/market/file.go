package market

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a Store in the file with this path, for processes on one machine.
type File string

// Load implements Store.
func (f File) Load(context.Context) (m Market, err error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return m, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read market: %w", err)
	}
	return m, nil
}

// Save implements Store. It replaces the file atomically.
func (f File) Save(_ context.Context, m Market) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(string(f)), ".market-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(raw)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), string(f))
}
