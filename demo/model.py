"""A model that says how many words it was told, for the demo: Anthropic Messages on a port of this machine."""
import http.server
import json
import sys


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        with open(sys.argv[1], 'wb') as received:
            received.write(body)
        said = json.loads(body)['messages'][-1]['content'][0]['text']
        answer = json.dumps({
            'id': 'msg_1', 'type': 'message', 'role': 'assistant', 'model': 'demo', 'stop_reason': 'end_turn',
            'content': [{'type': 'text', 'text': f'You said: {said}'}], 'usage': {'input_tokens': 9, 'output_tokens': 9}})
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
