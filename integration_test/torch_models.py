"""Small models of PyTorch and transformers, freshly initialised, each with how a micro-batch for it is drawn: FAMILIES[name] is (make, draw)."""

import torch
import transformers
from torch import nn
from torch.nn import functional

VOCABULARY, TOKENS, BATCH, CLASSES = 96, 16, 2, 5

SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
GATED = dict(SMALL, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=64)
NO_DROPOUT = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
ENCODER = dict(SMALL, **NO_DROPOUT, intermediate_size=64, max_position_embeddings=64)
MIXTURE = dict(GATED, num_experts=4, num_experts_per_tok=2)
PAIR = dict(vocab_size=VOCABULARY, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, dropout=0, attention_dropout=0, activation_dropout=0)
PATCHES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, num_labels=CLASSES)
WAVES = dict(SMALL, intermediate_size=64, hidden_dropout=0, attention_dropout=0, activation_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0,
             mask_time_prob=0, apply_spec_augment=False, conv_dim=[8, 8], conv_stride=[5, 2], conv_kernel=[10, 3], num_feat_extract_layers=2,
             num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, num_labels=CLASSES)


def values(*shape):
    return lambda generator: torch.randn(*shape, generator=generator)


def ids(high, *shape, low=0):
    return lambda generator: torch.randint(low, high, shape, generator=generator)


def batch(**inputs):
    return lambda generator: {name: draw(generator) for name, draw in inputs.items()}


def tokens(length=TOKENS):
    """Ids from 2 on: some models take 0 or 1 for padding."""
    return ids(VOCABULARY, BATCH, length, low=2)


TEXT = batch(input_ids=tokens(), labels=tokens())
TRANSLATION = batch(input_ids=tokens(), decoder_input_ids=tokens(8), labels=tokens(8))
IMAGES = batch(pixel_values=values(BATCH, 3, 32, 32), labels=ids(CLASSES, BATCH))
SOUNDS = batch(input_values=values(BATCH, 400), labels=ids(CLASSES, BATCH))


def documents(generator):
    """The number of the document that each token of a packed row is in."""
    return (torch.rand(BATCH, TOKENS, generator=generator) < 0.25).long().cumsum(1)


def restarts(generator):
    """Positions that begin anew with each document."""
    number = documents(generator)
    places = torch.arange(TOKENS).expand_as(number)
    begins = (number != torch.roll(number, 1, 1)) | (places == 0)
    return places - (places * begins).cummax(1).values


class Packed(nn.Module):
    """Attention within the documents of a packed row, whose numbers are an input."""

    def __init__(self):
        super().__init__()
        self.table, self.qkv, self.head = nn.Embedding(VOCABULARY, 32), nn.Linear(32, 96), nn.Linear(32, VOCABULARY)

    def forward(self, input_ids, documents, labels):
        x = self.table(input_ids)
        q, k, v = (each.unflatten(-1, (4, 8)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        mask = (documents[:, None, :, None] == documents[:, None, None, :]) & causal
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return functional.cross_entropy(self.head(x + y.transpose(1, 2).flatten(2)).flatten(0, 1), labels.flatten())


class Convolutions(nn.Module):
    """A residual net with batch norms."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv, self.norm2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, pixel_values, labels):
        x = functional.relu(self.norm1(self.stem(pixel_values)))
        x = functional.relu(x + self.norm2(self.conv(x)))
        return functional.cross_entropy(self.head(x.mean((2, 3))), labels)


class Recurrent(nn.Module):
    """A language model of two layers of LSTM, or one of GRU in both directions."""

    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.cells = nn.LSTM(16, 24, 2, batch_first=True) if kind == 'lstm' else nn.GRU(16, 12, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, VOCABULARY)

    def forward(self, input_ids, labels):
        hidden, _ = self.cells(self.embedding(input_ids))
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


class EncoderDecoder(nn.Module):
    """torch.nn.Transformer."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY)
        self.layers = nn.Transformer(32, 4, 1, 1, 64, dropout=0.0, batch_first=True)

    def forward(self, input_ids, decoder_input_ids, labels):
        hidden = self.layers(self.embedding(input_ids), self.embedding(decoder_input_ids))
        return functional.cross_entropy(self.head(hidden).flatten(0, 1), labels.flatten())


class Sequence(nn.Module):
    """Dilated and grouped convolutions over time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(4, 16, 3, dilation=2, padding=2), nn.BatchNorm1d(16), nn.PReLU(), nn.Conv1d(16, 16, 3, groups=4), nn.ELU(),
                                    nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, 3))

    def forward(self, x, y):
        return functional.smooth_l1_loss(self.layers(x), y)


class Segmentation(nn.Module):
    """A U-Net in two or three dimensions."""

    def __init__(self, dims):
        super().__init__()
        conv, up = (nn.Conv2d, nn.ConvTranspose2d) if dims == 2 else (nn.Conv3d, nn.ConvTranspose3d)
        self.down, self.norm = conv(3, 8, 3, padding=1), nn.GroupNorm(2, 8) if dims == 2 else nn.InstanceNorm3d(8, affine=True)
        self.inner, self.up = conv(8, 16, 3, stride=2, padding=1), up(16, 8, 2, stride=2)
        self.head = conv(16, CLASSES, 1)

    def forward(self, x, y):
        skip = functional.silu(self.norm(self.down(x)))
        return functional.cross_entropy(self.head(torch.cat([skip, self.up(functional.leaky_relu(self.inner(skip)))], 1)), y)


class Enlarged(nn.Module):
    """Images of twice the size: interpolated, or by shuffled pixels after a reflecting pad."""

    def __init__(self, shuffles):
        super().__init__()
        self.shuffles = shuffles
        self.first = nn.Conv2d(3, 12, 3, padding=1, padding_mode='reflect' if shuffles else 'zeros')
        self.second = nn.Conv2d(12, 3, 3, padding=1)

    def forward(self, x, y):
        if self.shuffles:
            return functional.huber_loss(functional.pixel_shuffle(self.first(x), 2), y)
        return functional.l1_loss(self.second(functional.interpolate(functional.relu(self.first(x)), scale_factor=2, mode='bilinear')), y)


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(20, 8), nn.Linear(4, 20)

    def forward(self, x, noise):
        mean, spread = self.encoder(x).chunk(2, -1)
        divergence = -0.5 * (1 + spread - mean ** 2 - spread.exp()).sum(-1).mean()
        return functional.mse_loss(self.decoder(mean + noise * torch.exp(0.5 * spread)), x) + 0.1 * divergence


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.scale = nn.Linear(12, 8), nn.Linear(10, 8), nn.Parameter(torch.tensor(1.0))

    def forward(self, x, y):
        left, right = (functional.normalize(layer(each), dim=-1) for layer, each in ((self.left, x), (self.right, y)))
        scores, wanted = left @ right.T * self.scale.exp(), torch.arange(4)
        return (functional.cross_entropy(scores, wanted) + functional.cross_entropy(scores.T, wanted)) / 2


class ManyLosses(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.classes, self.numbers, self.marks = nn.Linear(10, 16), nn.Linear(16, CLASSES), nn.Linear(16, 2), nn.Linear(16, 3)

    def forward(self, x, c, r, m):
        hidden = torch.tanh(self.base(x))
        scores = self.classes(hidden)
        return (functional.cross_entropy(scores, c) + 0.5 * functional.mse_loss(self.numbers(hidden), r)
                + 0.1 * functional.binary_cross_entropy_with_logits(self.marks(hidden), m)
                + 0.2 * functional.kl_div(functional.log_softmax(scores, -1), torch.softmax(scores.detach(), -1), reduction='batchmean'))


class Products(nn.Module):
    """einsum, cumsum, logsumexp, and a gate of one number."""

    def __init__(self):
        super().__init__()
        self.weight, self.gate = nn.Parameter(torch.randn(4, 8, 16) * 0.1), nn.Parameter(torch.zeros(()))

    def forward(self, x, y):
        return functional.mse_loss(torch.einsum('bsd,hde->bhse', x, self.weight).softmax(-1).cumsum(-2).logsumexp(-1) * (1 + self.gate), y)


class Reparametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(8, 6))

    def forward(self, x, y):
        return functional.mse_loss(self.layer(x), y)


class Mixture(nn.Module):
    """Experts as people write them, with a gate of its own: each choice's matrices are gathered, or all experts compute all tokens and
    those that are not chosen have weights of zero."""

    def __init__(self, form):
        super().__init__()
        self.form, self.embedding, self.router = form, nn.Embedding(VOCABULARY, 16), nn.Linear(16, 4, bias=False)
        self.gate, self.up = (nn.Parameter(0.3 * torch.randn(4, 24, 16)) for _ in range(2))
        self.down = nn.Parameter(0.3 * torch.randn(4, 16, 24))
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, input_ids, labels):
        x = self.embedding(input_ids).flatten(0, 1)
        weights, choices = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        return functional.cross_entropy(self.head(x + getattr(self, self.form)(x, weights, choices)), labels.flatten())

    def gathered(self, x, weights, choices):
        gate, up = (torch.einsum('ti,tchi->tch', x, matrices[choices]) for matrices in (self.gate, self.up))
        return torch.einsum('tco,tc->to', torch.einsum('tch,tcoh->tco', functional.silu(gate) * up, self.down[choices]), weights)

    def scattered(self, x, weights, choices):
        every = torch.zeros(len(x), 4).scatter(1, choices, weights)
        gate, up = (torch.einsum('ti,ehi->teh', x, matrices) for matrices in (self.gate, self.up))
        return torch.einsum('teo,te->to', torch.einsum('teh,eoh->teo', functional.silu(gate) * up, self.down), every)

    def one_hot(self, x, weights, choices):
        every = (functional.one_hot(choices, 4) * weights[..., None]).sum(1)
        rows = x.expand(4, *x.shape)
        gate, up = (torch.bmm(rows, matrices.transpose(1, 2)) for matrices in (self.gate, self.up))
        return (torch.bmm(functional.silu(gate) * up, self.down.transpose(1, 2)) * every.t()[..., None]).sum(0)


class Clip(nn.Module):
    """CLIP, which computes its loss where a flag asks for it."""

    def __init__(self):
        super().__init__()
        text = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
                    max_position_embeddings=32, projection_dim=16, eos_token_id=1, bos_token_id=0)
        vision = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, image_size=32, patch_size=8, projection_dim=16)
        self.model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))

    def forward(self, input_ids, pixel_values):
        return self.model(input_ids=input_ids, pixel_values=pixel_values, return_loss=True).loss


def of(name, **settings):
    """Returns a function that makes the model of transformers for a head such as 'Qwen2ForCausalLM'."""
    def make():
        model = getattr(transformers, name)
        return model(model.config_class(**settings))
    return make


FAMILIES = {
    # Modules of one's own.
    'convolutions': (Convolutions, IMAGES),
    'lstm': (lambda: Recurrent('lstm'), TEXT),
    'gru': (lambda: Recurrent('gru'), TEXT),
    'encoder-decoder': (EncoderDecoder, TRANSLATION),
    'sequence': (Sequence, batch(x=values(4, 4, 16), y=values(4, 3))),
    'unet': (lambda: Segmentation(2), batch(x=values(2, 3, 16, 16), y=ids(CLASSES, 2, 16, 16))),
    'unet3d': (lambda: Segmentation(3), batch(x=values(1, 3, 8, 8, 8), y=ids(CLASSES, 1, 8, 8, 8))),
    'interpolated': (lambda: Enlarged(False), batch(x=values(2, 3, 8, 8), y=values(2, 3, 16, 16))),
    'shuffled': (lambda: Enlarged(True), batch(x=values(2, 3, 8, 8), y=values(2, 3, 16, 16))),
    'variational': (Variational, batch(x=values(4, 20), noise=values(4, 4))),
    'contrast': (Contrast, batch(x=values(4, 12), y=values(4, 10))),
    'many-losses': (ManyLosses, batch(x=values(6, 10), c=ids(CLASSES, 6), r=values(6, 2), m=lambda generator: torch.rand(6, 3, generator=generator))),
    'products': (Products, batch(x=values(2, 5, 8), y=values(2, 4, 5))),
    'experts-gathered': (lambda: Mixture('gathered'), TEXT),
    'experts-scattered': (lambda: Mixture('scattered'), TEXT),
    'experts-one-hot': (lambda: Mixture('one_hot'), TEXT),
    'reparametrized': (Reparametrized, batch(x=values(4, 8), y=values(4, 6))),
    'packed': (Packed, batch(input_ids=tokens(), documents=documents, labels=tokens())),
    'llama-packed': (of('LlamaForCausalLM', **GATED, use_cache=False), batch(input_ids=tokens(), position_ids=restarts, labels=tokens())),
    # Decoders.
    'gpt2': (of('GPT2LMHeadModel', vocab_size=VOCABULARY, n_positions=TOKENS, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), TEXT),
    'gpt-neo': (of('GPTNeoForCausalLM', vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[['global', 'local'], 1]],
                   window_size=8, embed_dropout=0, attention_dropout=0, resid_dropout=0, max_position_embeddings=64), TEXT),
    'gpt-j': (of('GPTJForCausalLM', vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=64, resid_pdrop=0, embd_pdrop=0,
                 attn_pdrop=0), TEXT),
    'gpt-neox': (of('GPTNeoXForCausalLM', **SMALL, intermediate_size=64, max_position_embeddings=64), TEXT),
    'codegen': (of('CodeGenForCausalLM', vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=64, resid_pdrop=0,
                   embd_pdrop=0, attn_pdrop=0), TEXT),
    'opt': (of('OPTForCausalLM', **SMALL, ffn_dim=64, max_position_embeddings=TOKENS, dropout=0, word_embed_proj_dim=32), TEXT),
    'bloom': (of('BloomForCausalLM', vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, attention_dropout=0, hidden_dropout=0), TEXT),
    'falcon': (of('FalconForCausalLM', **SMALL, attention_dropout=0, hidden_dropout=0), TEXT),
    'mpt': (of('MptForCausalLM', vocab_size=VOCABULARY, d_model=32, n_layers=2, n_heads=4, max_seq_len=64), TEXT),
    'llama': (of('LlamaForCausalLM', **GATED), TEXT),
    'mistral': (of('MistralForCausalLM', **GATED, sliding_window=8), TEXT),
    'phi3': (of('Phi3ForCausalLM', **GATED, pad_token_id=0), TEXT),
    'qwen2': (of('Qwen2ForCausalLM', **GATED), TEXT),
    'qwen3': (of('Qwen3ForCausalLM', **GATED, head_dim=8), TEXT),
    'gemma2': (of('Gemma2ForCausalLM', **GATED, head_dim=8, sliding_window=8), TEXT),
    'gemma3': (of('Gemma3ForCausalLM', **GATED, head_dim=8, sliding_window=8), TEXT),
    'olmo2': (of('Olmo2ForCausalLM', **GATED), TEXT),
    'cohere': (of('CohereForCausalLM', **GATED), TEXT),
    'granite': (of('GraniteForCausalLM', **GATED), TEXT),
    'starcoder2': (of('Starcoder2ForCausalLM', **GATED, residual_dropout=0, embedding_dropout=0), TEXT),
    'stablelm': (of('StableLmForCausalLM', **GATED), TEXT),
    'nemotron': (of('NemotronForCausalLM', **GATED), TEXT),
    'glm4': (of('Glm4ForCausalLM', **GATED, head_dim=8, pad_token_id=0), TEXT),
    # Mixtures of experts.
    'mixtral': (of('MixtralForCausalLM', **GATED, num_local_experts=4, num_experts_per_tok=2), TEXT),
    'qwen2-moe': (of('Qwen2MoeForCausalLM', **MIXTURE, moe_intermediate_size=16, shared_expert_intermediate_size=24), TEXT),
    'qwen3-moe': (of('Qwen3MoeForCausalLM', **MIXTURE, head_dim=8, moe_intermediate_size=16), TEXT),
    'olmoe': (of('OlmoeForCausalLM', **MIXTURE), TEXT),
    'gpt-oss': (of('GptOssForCausalLM', **GATED, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=8), TEXT),
    'deepseek-v3': (of('DeepseekV3ForCausalLM', **dict(GATED, num_key_value_heads=4), moe_intermediate_size=16, n_routed_experts=4, num_experts_per_tok=2,
                       n_group=2, topk_group=1, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
                       first_k_dense_replace=1), TEXT),
    # State spaces.
    'mamba': (of('MambaForCausalLM', vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=1), TEXT),
    'mamba2': (of('Mamba2ForCausalLM', vocab_size=VOCABULARY, hidden_size=16, num_heads=4, head_dim=8, state_size=8, num_hidden_layers=1, n_groups=1,
                  chunk_size=8), TEXT),
    'rwkv': (of('RwkvForCausalLM', vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, context_length=16), TEXT),
    # Encoders.
    'bert': (of('BertForMaskedLM', **ENCODER), TEXT),
    'roberta': (of('RobertaForMaskedLM', **ENCODER), TEXT),
    'albert': (of('AlbertForMaskedLM', **ENCODER, embedding_size=16, classifier_dropout_prob=0), TEXT),
    'electra': (of('ElectraForMaskedLM', **ENCODER, embedding_size=16), TEXT),
    'deberta': (of('DebertaV2ForMaskedLM', **ENCODER, relative_attention=True, pos_att_type='c2p|p2c'), TEXT),
    'distilbert': (of('DistilBertForMaskedLM', vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64, dropout=0, attention_dropout=0,
                      max_position_embeddings=64), TEXT),
    'xlnet': (of('XLNetLMHeadModel', vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48, dropout=0), TEXT),
    'perceiver': (of('PerceiverForMaskedLM', vocab_size=VOCABULARY, d_latents=16, d_model=24, num_latents=8, num_self_attends_per_block=1,
                     num_self_attention_heads=4, num_cross_attention_heads=4, max_position_embeddings=TOKENS, attention_probs_dropout_prob=0,
                     qk_channels=16, v_channels=16), batch(inputs=tokens(), labels=tokens())),
    # Encoders with decoders.
    't5': (of('T5ForConditionalGeneration', vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0), TRANSLATION),
    'mt5': (of('MT5ForConditionalGeneration', vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, dropout_rate=0), TRANSLATION),
    'bart': (of('BartForConditionalGeneration', **PAIR, max_position_embeddings=64), TRANSLATION),
    'mbart': (of('MBartForConditionalGeneration', **PAIR, max_position_embeddings=64), TRANSLATION),
    'pegasus': (of('PegasusForConditionalGeneration', **PAIR, max_position_embeddings=64), TRANSLATION),
    'whisper': (of('WhisperForConditionalGeneration', **PAIR, num_mel_bins=8, max_source_positions=16, max_target_positions=32, pad_token_id=0,
                   bos_token_id=1, eos_token_id=1, decoder_start_token_id=1), batch(input_features=values(BATCH, 8, 32), labels=tokens(8))),
    # Images, sounds, and both with text.
    'vit': (of('ViTForImageClassification', **PATCHES), IMAGES),
    'deit': (of('DeiTForImageClassification', **PATCHES), IMAGES),
    'beit': (of('BeitForImageClassification', **PATCHES, drop_path_rate=0, use_relative_position_bias=True), IMAGES),
    'dinov2': (of('Dinov2ForImageClassification', **PATCHES), IMAGES),
    'swin': (of('SwinForImageClassification', image_size=32, patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4,
                num_labels=CLASSES, drop_path_rate=0.0), IMAGES),
    'vit-mae': (of('ViTMAEForPreTraining', **PATCHES, decoder_hidden_size=16, decoder_num_attention_heads=4, decoder_num_hidden_layers=1,
                   decoder_intermediate_size=32),
                batch(pixel_values=values(BATCH, 3, 32, 32), noise=lambda generator: torch.rand(BATCH, 16, generator=generator))),
    'convnext': (of('ConvNextForImageClassification', hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=CLASSES), IMAGES),
    'convnext-v2': (of('ConvNextV2ForImageClassification', hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32, num_labels=CLASSES), IMAGES),
    'resnet': (of('ResNetForImageClassification', embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type='basic', num_labels=CLASSES), IMAGES),
    'regnet': (of('RegNetForImageClassification', embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], groups_width=8, num_labels=CLASSES), IMAGES),
    'poolformer': (of('PoolFormerForImageClassification', hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], num_labels=CLASSES, drop_path_rate=0), IMAGES),
    'segformer': (of('SegformerForSemanticSegmentation', num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3],
                     strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=CLASSES, **NO_DROPOUT,
                     drop_path_rate=0, classifier_dropout_prob=0), batch(pixel_values=values(BATCH, 3, 32, 32), labels=ids(CLASSES, BATCH, 32, 32))),
    'wav2vec2': (of('Wav2Vec2ForSequenceClassification', **WAVES), SOUNDS),
    'hubert': (of('HubertForSequenceClassification', **WAVES), SOUNDS),
    'clip': (Clip, batch(input_ids=ids(VOCABULARY, 3, 8, low=2), pixel_values=values(3, 3, 32, 32))),
    'patchtst': (of('PatchTSTForPrediction', context_length=32, patch_length=8, patch_stride=8, prediction_length=8, num_input_channels=2, d_model=16,
                    num_attention_heads=4, num_hidden_layers=1, ffn_dim=32, loss='mse', attention_dropout=0, ff_dropout=0, path_dropout=0,
                    positional_dropout=0, head_dropout=0), batch(past_values=values(BATCH, 32, 2), future_values=values(BATCH, 8, 2))),
}
