package codec

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
)

// These constants bound a key file.
const (
	keyBytes = 32 // AES-256
	maxKeys  = 16
)

// keys holds the keys of a key file. The codec encrypts with the first key. It decrypts a payload with the key whose
// name is in the payload's metadata.
type keys struct {
	first string
	by    map[string]cipher.AEAD // by the keys' names
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// parseKeys parses a key file and tests each key. Each line consists of the name of a key and the key in base64.
// Empty lines and lines that begin with # are ignored. Errors do not contain keys.
func parseKeys(text []byte) (keys, error) {
	k := keys{by: map[string]cipher.AEAD{}}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		fields := bytes.Fields(line)
		if len(fields) != 2 {
			return keys{}, fmt.Errorf("line %d: write the name of a key and the key, with a space between", n)
		}
		name := string(fields[0])
		if !keyName.MatchString(name) {
			return keys{}, fmt.Errorf("line %d: use letters, digits, '.', '_' and '-' in the name of a key, at most 63", n)
		}
		if k.by[name] != nil {
			return keys{}, fmt.Errorf("line %d: a second key with the name %s", n, name)
		}
		if len(k.by) == maxKeys {
			return keys{}, fmt.Errorf("line %d: at most %d keys", n, maxKeys)
		}
		sealer, err := sealerOf(fields[1])
		if err != nil {
			return keys{}, fmt.Errorf("line %d: key %s: %w", n, name, err)
		}
		if k.by[name] = sealer; k.first == "" {
			k.first = name
		}
	}
	if k.first == "" {
		return keys{}, errors.New(`it has no key; make one with: echo "key-1 $(openssl rand -base64 32)"`)
	}
	return k, k.probe()
}

// sealerOf returns the cipher for a key in base64.
func sealerOf(text []byte) (cipher.AEAD, error) {
	key, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("a key is %d bytes in base64, as openssl rand -base64 %[1]d prints them", keyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errors.New("AES does not accept this key")
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// probe encrypts and decrypts a text with each key. It returns an error if the decrypted text differs.
func (k keys) probe() error {
	for name, sealer := range k.by {
		text := []byte("probe")
		opened, err := sealer.Open(nil, nil, sealer.Seal(nil, nil, text, []byte(name)), []byte(name))
		if err != nil || !bytes.Equal(opened, text) {
			return fmt.Errorf("key %s does not decrypt a text that it has encrypted: %w", name, err)
		}
	}
	return nil
}
