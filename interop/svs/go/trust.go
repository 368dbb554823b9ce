package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn"
	spec "github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/object/storage"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/keychain"
	"github.com/named-data/ndnd/std/security/signer"
)

// groupKey is a trust schema with one Ed25519 key for the whole group: everything is signed with
// it, and only what it signed is taken.
type groupKey struct{ signer ndn.Signer }

func (k groupKey) Check(_, certificate enc.Name) bool {
	return k.signer.KeyName().IsPrefix(certificate)
}
func (k groupKey) Suggest(_ enc.Name, _ ndn.KeyChain) ndn.Signer { return k.signer }

func groupTrust(seedHex, keyName string) (*security.TrustConfig, ndn.Signer) {
	seed, err := hex.DecodeString(seedHex)
	fatal(err)
	key := signer.NewEd25519Signer(mustName(keyName), ed25519.NewKeyFromSeed(seed))
	certificate, err := security.SelfSign(security.SignCertArgs{
		Signer: key, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	})
	fatal(err)
	chain := keychain.NewKeyChainMem(storage.NewMemoryStore())
	fatal(chain.InsertKey(key))
	fatal(chain.InsertCert(certificate.Join()))
	data, _, err := spec.Spec{}.ReadData(enc.NewBufferView(certificate.Join()))
	fatal(err)
	trust, err := security.NewTrustConfig(chain, groupKey{key}, []enc.Name{data.Name()})
	fatal(err)
	return trust, key
}
