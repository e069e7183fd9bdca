package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// certificates are a certificate authority and what it has signed, in PEM form.
type certificates struct{ ca, serverCert, serverKey, clientCert, clientKey string }

func makeCertificates(t *testing.T) (c certificates) {
	t.Helper()
	n := int64(0)
	sign := func(name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string, string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		n++
		x := &x509.Certificate{SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: parent == nil}
		if parent == nil {
			parent, parentKey = x, key
		}
		der, err := x509.CreateCertificate(rand.Reader, x, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		k, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return x, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}))
	}
	ca, key, text, _ := sign("authority", nil, nil)
	c.ca = text
	_, _, c.serverCert, c.serverKey = sign("server", ca, key)
	_, _, c.clientCert, c.clientKey = sign("client", ca, key)
	return c
}

// TestSecureBroker reads through TLS with client certificates and all SASL
// mechanisms, and tells what is wrong with a connection that may not.
func TestSecureBroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	certs := makeCertificates(t)
	port := freePort(t)
	b := startOwnBroker(t, func(b *ownBroker, controller int) (string, []string) {
		write := func(name, text string) string {
			if err := os.WriteFile(b.dir+"/"+name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return b.dir + "/" + name
		}
		props := fmt.Sprintf(`listeners=PLAINTEXT://127.0.0.1:%[1]d,SASL_SSL://127.0.0.1:%[2]d,CONTROLLER://127.0.0.1:%[3]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d,SASL_SSL://127.0.0.1:%[2]d
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_me="pass word";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location=%[4]s
ssl.truststore.type=PEM
ssl.truststore.location=%[5]s
ssl.client.auth=required
`, b.port, port, controller, write("keystore.pem", certs.serverKey+certs.serverCert), write("ca.pem", certs.ca))
		return props, []string{"--add-scram", "SCRAM-SHA-256=[name=me,password=secret256]", "--add-scram", "SCRAM-SHA-512=[name=me,password=secret512]"}
	})
	c := clusterAt(t, b.addr())
	c.create("t", 1, nil)
	c.produce(rec("t", 0, "-", "a"))
	secure := func(more ...string) map[string]string {
		o := c.options("t", "format", "text", "broker", fmt.Sprintf("127.0.0.1:%d", port), "security protocol", "SASL_SSL",
			"sasl mechanisms", "PLAIN", "sasl username", "me", "sasl password", "pass word",
			"ssl certificate authority", certs.ca, "ssl certificate", certs.clientCert, "ssl key", certs.clientKey)
		for i := 0; i < len(more); i += 2 {
			o[more[i]] = more[i+1]
		}
		return o
	}
	for mechanism, password := range map[string]string{"PLAIN": "pass word", "SCRAM-SHA-256": "secret256", "SCRAM-SHA-512": "secret512"} {
		s := declare(t, secure("sasl mechanisms", mechanism, "sasl password", password), nil)
		r := start(t, s, nil, newSink(s))
		r.until(t, "the snapshot", ready)
		r.stop()
		equal(t, r.content(), []string{"a"})
	}
	for name, x := range map[string]struct{ option, value, want string }{
		"wrong password":   {"sasl password", "wrong", "SASL"},
		"other authority":  {"ssl certificate authority", makeCertificates(t).ca, "certificate"},
		"no authority":     {"ssl certificate authority", "", "certificate"},
		"without TLS":      {"security protocol", "SASL_PLAINTEXT", "cannot reach Kafka"},
		"garbage":          {"ssl certificate authority", "garbage", "PEM"},
		"key does not fit": {"ssl key", certs.serverKey, "do not go together"},
	} {
		conn := secure(x.option, x.value)
		for _, k := range []string{"topic", "format", "topic metadata refresh interval"} {
			delete(conn, k)
		}
		err := Validate(context.Background(), conn)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
}
